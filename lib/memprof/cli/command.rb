# frozen_string_literal: true

require "optparse"

module Memprof
  module CLI
    # What the verbs have in common: options, help, errors. A verb has its options in {Flags}, and defines
    # SUMMARY, USAGE and DETAILS, and #call(arguments), which returns the exit status.
    class Command
      include Options

      # The whole path of a file to write, which is checked before the program runs, not when its report is to
      # be written.
      def self.output_path(text, option = "--output")
        text = text.dup.force_encoding(Encoding::UTF_8) # as everywhere in memprof, whatever the locale's is
        path = File.expand_path(text).force_encoding(Encoding::UTF_8)
        directory = File.dirname(path)
        problem =
          if !File.directory?(directory) then "no such directory: #{directory}"
          elsif File.directory?(path) then "is a directory"
          elsif File.exist?(path) && !File.writable?(path) then "not writable: #{path}"
          elsif !File.exist?(path) && !File.writable?(directory) then "not writable: #{directory}"
          end
        raise UsageError, "cannot write #{option} #{text.empty? ? '""' : text}: #{problem}" if problem

        path
      end

      def initialize(terminal)
        @terminal = terminal
        @options = {}
      end

      def start(arguments)
        rest = parse(arguments)
        return show_help if @options[:help]

        @given = @options
        @options = defaults.merge(@given)
        guard { call(rest) }
      end

      def help
        title = "#{@terminal.bold("memprof #{verb}")}: #{self.class::SUMMARY}"
        "#{title}\n\n#{parser.help}\n#{self.class::DETAILS}"
      end

      def show_help = @terminal.print(help) ? 0 : 2

      private

      # What memprof itself or the system refuses is no bug of the command.
      def guard
        yield
      rescue Memprof::Error, SystemCallError => e
        raise UsageError, e.message
      end

      def verb = VERBS.key(self.class.name.split("::").last.to_sym)

      # The options on the command line, without those of the file of defaults.
      attr_reader :given

      # What the file of defaults says.
      def defaults
        file = Defaults.new(verb)
        arguments = file.arguments(flags)
        @options = {}
        file.blame { parse(arguments) } if arguments.any?
        @options
      end

      def parse(arguments)
        arrange(arguments)
      rescue OptionParser::InvalidArgument => e
        option, value = e.args.join("=").split("=", 2)
        raise UsageError, "invalid #{option} \"#{value}\"; see `memprof help #{verb}`"
      rescue OptionParser::ParseError => e
        raise UsageError, "#{one_line(e)}; see `memprof help #{verb}`"
      rescue ArgumentError => e
        # OptionParser has no patience with bytes that are no text.
        raise UsageError, "cannot read the options: #{e.message}"
      end

      # Options come first: what follows may be a program's own.
      def arrange(arguments) = parser.order(arguments)

      # Names in brackets are of arguments that may be left out.
      def expect_arguments(arguments, *names)
        missing = names.grep_v(/\A\[/)[arguments.size]
        raise UsageError, "#{missing} is missing; see `memprof help #{verb}`" if missing

        extra = arguments.drop(names.size)
        raise UsageError,
          "unexpected arguments: #{extra.join(" ")}; see `memprof help #{verb}`" unless extra.empty?

        arguments
      end

      def load_library
        require "memprof"
      rescue LoadError, Memprof::Error => e
        raise UsageError, e.message.lines.first.chomp
      end

      def parser
        return @parser if @parser

        @parser = OptionParser.new(nil, 25, "  ")
        @parser.program_name = "memprof"
        @parser.version = VERSION
        @parser.banner = "Usage: memprof #{verb} #{self.class::USAGE}"
        @parser.separator("\nOptions:")
        define_options
        @parser
      end

      def output_path(text, option = "--output") = (Command.output_path(text, option) unless text == "-")

      def check_readable(path, stdin: true)
        return if path == "-" && stdin

        problem =
          if path == "-" then "a file is required"
          elsif !File.exist?(path) then "no such file"
          elsif File.directory?(path) then "is a directory"
          elsif !File.readable?(path) then "permission denied"
          elsif !stdin && File.pipe?(path) then "a file is required, not a pipe"
          end
        raise UsageError, "cannot read #{path}: #{problem}" if problem
      end

      # Says what a file is that is not what the verb reads, if it is one of memprof's files.
      def refuse_other_kind(path, wanted, *kinds)
        require_relative "../file_kind"
        kind = FileKind.of(path)
        return if kind.nil? || kinds.include?(kind)

        raise UsageError, "#{path} is not #{wanted} (it is #{FileKind.sentence(kind, path)})"
      end

      # Checks the argument OUT: without --force only new files, devices and pipes are written.
      def check_out(out)
        return if out == "-"

        output_path(out, "OUT")
        return unless File.exist?(out) && !@options[:force] && Output.file_path(out)

        raise UsageError, "#{out} already exists; use --force to replace it"
      end

      def output_format = @options.fetch(:format, :text)

      # How a Page is laid out: for a screen, or for a file or a program.
      def screen
        return {} if @options[:output] || output_format != :text

        { width: @terminal.columns, paint: Paint.new(@terminal.color?) }
      end

      # Prints a result, or writes it to the file of --output; gives the exit status.
      def deliver(text)
        return @terminal.print(text) ? 0 : 2 unless @options[:output]

        Output.write(@options[:output], text)
        0
      end

      def refuse_binary_on_screen
        return unless @options[:format] == :pprof && !@options[:output] && @terminal.tty?

        raise UsageError, "pprof is a binary format; give --output PATH"
      end

      # OptionParser puts what it thinks was meant on lines of its own.
      def one_line(error)
        message = error.message.lines.first.chomp
        option = error.args.first.to_s[/\A--[\w-]+/] if error.is_a?(OptionParser::InvalidOption)
        option ? message + Suggestion.of(option, flags.map(&:long)) : message
      end
    end
  end
end
