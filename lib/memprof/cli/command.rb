# frozen_string_literal: true

require "optparse"

module Memprof
  module CLI
    # Base of all verbs: options, help, errors. A verb has its options in {Flags}, and defines SUMMARY, USAGE
    # and DETAILS, and #call(arguments), which returns the exit status.
    class Command
      include Options

      # The absolute path of an output file, checked before the program runs, not when its report is written.
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

      def show_help = @terminal.print(help) ? ExitStatus::DONE : ExitStatus::FAILED

      private

      # Errors of memprof or of the system are not bugs of the command.
      def guard
        yield
      rescue Memprof::Error, SystemCallError => e
        raise UsageError, e.message
      end

      def verb = VERBS.key(self.class.name.split("::").last.to_sym)

      # The options of the command line, without those of the defaults file.
      attr_reader :given

      # The options of the defaults file.
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
        # OptionParser can't handle invalid bytes.
        raise UsageError, "cannot read the options: #{e.message}"
      end

      # Options come first: what follows may belong to a program.
      def arrange(arguments) = parser.order(arguments)

      # Names in brackets are optional arguments.
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

      # If a file is another kind of memprof's files, says which.
      def refuse_other_kind(path, wanted, *kinds)
        require_relative "../file_kind"
        kind = FileKind.of(path)
        return if kind.nil? || kinds.include?(kind)

        raise UsageError, "#{path} is not #{wanted} (it is #{FileKind.sentence(kind, Suggestion.word(path))})"
      end

      # Checks the argument OUT: existing files are only overwritten with --force; devices and pipes always.
      def check_out(out)
        return if out == "-"

        output_path(out, "OUT")
        return unless File.exist?(out) && !@options[:force] && Output.file_path(out)

        raise UsageError, "#{out} already exists; use --force to replace it"
      end

      def output_format = option(:format)

      # Layout options of a Page: for a screen, or for a file or a program.
      def screen
        return {} if @options[:output] || output_format != :text

        { width: @terminal.columns, paint: Paint.new(@terminal.color?) }
      end

      # Prints a result, or writes it to the file of --output; returns the exit status.
      def deliver(text)
        return @terminal.print(text) ? ExitStatus::DONE : ExitStatus::FAILED unless @options[:output]

        Output.write(@options[:output], text)
        0
      end

      def refuse_binary_on_screen
        return unless @options[:format] == :pprof && !@options[:output] && @terminal.tty?

        raise UsageError, "pprof is a binary format; give --output FILE"
      end

      # OptionParser puts its suggestions on lines of their own.
      def one_line(error)
        message = error.message.lines.first.chomp
        option = error.args.first.to_s[/\A--[\w-]+/] if error.is_a?(OptionParser::InvalidOption)
        option ? message + Suggestion.of(option, flags.map(&:long)) : message
      end
    end
  end
end
