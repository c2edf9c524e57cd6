# frozen_string_literal: true

require "tmpdir"
require_relative "../dump/in_progress"
require_relative "../dump/options"
require_relative "../dump/spool"
require_relative "../units"

module Memprof
  module CLI
    # `memprof convert`: a dump in another format.
    class Convert < Command
      SUMMARY = "writes a dump in another format"
      USAGE = "[OPTIONS] IN OUT"
      DETAILS = <<~TEXT
        IN is a dump of memprof's or of ObjectSpace.dump_all, compressed or not: which,
        is seen from what is in it. The ending of OUT says the format (.memprof is
        binary, all else memprof's JSON lines), unless --format does, and the
        compression (.gz, .zst). A - stands for stdin and stdout.

        --values takes contents out, so that a dump may leave the house. What is not in
        IN cannot be put back. Lines that make no sense are left out and counted.

        Examples:
          memprof convert heap.memprof heap.json.gz
          memprof convert --format objspace heap.memprof heap.json
          memprof convert --values hash heap.json - | less
      TEXT

      def call(arguments)
        input, output = paths(arguments)
        @input = input == "-" ? "stdin" : input
        options = dump_options(output)
        load_library
        with_input(input) { |path| output == "-" ? to_stdout(path, options) : to_file(path, output, options) }
      rescue Memprof::Error => e
        raise UsageError, e.message
      end

      private

      def define_options(parser)
        one_of(parser, Memprof::Dump::Options::FORMATS, "-f", "--format FORMAT",
          "memprof, objspace, binary, heap_dump (default: by", "OUT's ending)", :format)
        one_of(parser, Memprof::Dump::Options::VALUES, "--values WHAT",
          "of strings and the like: full (default),", "truncate, hash, length, none", :values)
        flag(parser, "--force", "replace OUT if it is there", :force)
      end

      def paths(arguments)
        unless arguments.size == 2
          raise UsageError, "two files are needed, IN and OUT; see `memprof help convert`"
        end

        input, output = arguments
        unless input == "-" || (File.exist?(input) && !File.directory?(input) && File.readable?(input))
          raise UsageError, "cannot read #{input}"
        end
        return arguments if output == "-"

        output_path(output, "OUT")
        there = File.exist?(output) && !@options[:force]
        raise UsageError, "#{output} is there already; --force replaces it" if there

        arguments
      end

      def dump_options(output)
        Memprof::Dump::Options.new(output == "-" ? nil : output, format: @options[:format],
          values: @options.fetch(:values, :full))
      rescue ArgumentError => e
        raise UsageError, e.message
      end

      # A pipe can't be read twice, once to see what it is: it becomes a file.
      def with_input(input)
        return yield(input) if input != "-" && File.file?(input)

        Dir.mktmpdir("memprof-") do |directory|
          path = File.join(directory, "stdin")
          File.open(path, "wb", 0o600) { |file| IO.copy_stream(input == "-" ? $stdin : input, file) }
          yield(path)
        end
      end

      def to_stdout(path, options)
        if options.format == :binary && @terminal.tty?
          raise UsageError, "binary is no format for a screen; give a file"
        end

        Memprof::Dump::Spool.nameless do |file|
          report(convert(path, file, options))
          file.rewind
          @terminal.print_file(file) ? 0 : 2
        end
      end

      def to_file(path, output, options)
        full = Output.file_path(output)
        result =
          if full
            Memprof::Dump::InProgress.open(full) { |file| convert(path, file, options) }
          else
            Output.open(output) { |io| convert(path, io, options) }
          end
        report(result)
        0
      end

      def convert(path, file, options)
        Native.convert(path, file.fileno, options.to_native)
      rescue Memprof::Error => e
        raise UsageError, "cannot convert #{@input}: #{e.message}"
      end

      def report(result)
        skipped = result["skipped"].to_i
        if skipped.positive?
          lines = skipped == 1 ? "1 line that makes" : "#{Units.count(skipped)} lines that make"
          @terminal.warn("left out #{lines} no sense, the first is line #{result["first_skipped"]}")
        end
        @terminal.warn("the dump is cut: what is there of it was converted") if result["truncated"]
        @terminal.warn("#{Units.count(result["objects"])} objects, #{Units.bytes(result["bytes"])}")
      end
    end
  end
end
