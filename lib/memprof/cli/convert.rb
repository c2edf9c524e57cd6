# frozen_string_literal: true

require_relative "scratch"
require_relative "../dump/in_progress"
require_relative "../dump/options"
require_relative "../dump/spool"

module Memprof
  module CLI
    # `memprof convert`: a dump in another format.
    class Convert < Command
      SUMMARY = "writes a dump in another format"
      USAGE = "[OPTIONS] IN OUT"
      DETAILS = <<~TEXT
        IN is a dump of memprof or of ObjectSpace.dump_all, compressed or not, or a
        core file (detected by content). The extension of OUT selects the format
        (.memprof is binary, all others memprof's JSON lines) unless --format does, and
        the compression (.gz, .zst). A - stands for stdin and stdout.

        --contents removes contents, so that you can share the dump. It cannot add what
        IN lacks. Invalid lines are skipped and counted.

        Examples:
          memprof convert heap.memprof heap.json.gz
          memprof convert --format objspace heap.memprof heap.json
          memprof convert --contents hash heap.json - | less
          memprof convert core.4711 core.memprof
      TEXT

      def call(arguments)
        input, output = paths(arguments)
        @input = input == "-" ? "stdin" : input
        @output = output == "-" ? "stdout" : output
        options = dump_options(output)
        load_library
        with_input(input) { |path| output == "-" ? to_stdout(path, options) : to_file(path, output, options) }
      end

      private

      def paths(arguments)
        unless arguments.size == 2
          raise UsageError, "expected two files, IN and OUT; see `memprof help convert`"
        end

        input, output = arguments
        check_readable(input)
        check_out(output)
        arguments
      end

      def dump_options(output)
        Memprof::Dump::Options.new(output == "-" ? nil : output, format: @options[:format],
          values: option(:contents))
      rescue ArgumentError => e
        raise UsageError, e.message
      end

      # A pipe can't be read twice, to detect its kind first: it becomes a file.
      def with_input(input)
        return yield(input) if input != "-" && File.file?(input)

        Scratch.directory do |directory|
          path = File.join(directory, "stdin")
          File.open(path, "wb", 0o600) { |file| IO.copy_stream(input == "-" ? $stdin : input, file) }
          yield(path)
        end
      end

      def to_stdout(path, options)
        if options.format == :binary && @terminal.tty?
          raise UsageError, "the binary format cannot go to a terminal; give a file"
        end

        Memprof::Dump::Spool.nameless do |file|
          report(convert(path, file, options))
          file.rewind
          @terminal.print_file(file) ? ExitStatus::DONE : ExitStatus::FAILED
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
        if Memprof::Core.core?(path)
          return Memprof::Core.open(path).write(file, options, blocks: @options[:blocks])
        end
        raise UsageError, "--blocks needs a core file, and #{@input} is not one" if @options[:blocks]

        Native.convert(path, file.fileno, options.to_native)
      rescue InvalidDump => e
        raise UsageError, "cannot convert #{@input}: #{e.message}"
      rescue Memprof::Error => e
        raise UsageError, "cannot convert #{@input} to #{@output}: #{e.message}"
      end

      def report(result)
        skipped = result["skipped"].to_i
        if skipped.positive?
          lines = Units.plural(skipped, "invalid line")
          @terminal.warn("skipped #{lines}, the first is line #{result["first_skipped"]}")
        end
        unknown = result.fetch("unknown", [])
        @terminal.warn("not known in this build of Ruby: #{unknown.join(", ")}") if unknown.any?
        @terminal.warn("the dump is truncated: converted the part that is there") if result["truncated"]
        @terminal.warn("#{Units.count(result["objects"])} objects, #{Units.bytes(result["bytes"])}")
      end
    end
  end
end
