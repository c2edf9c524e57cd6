# frozen_string_literal: true

require "rbconfig"
require "tempfile"

module Memprof
  module CLI
    # `memprof malloc`: records malloc of a whole program, Ruby or not, or summarizes a recording.
    class Malloc < Command
      SUMMARY = "runs a command and reports which lines call malloc"
      USAGE = "[OPTIONS] [--] COMMAND [ARGUMENTS] | FILE [LATER]"
      DETAILS = <<~TEXT
        Records malloc from the start of COMMAND to its end. Each Ruby process that it
        starts prints a table to stderr when it ends: the lines that allocated the live
        memory, most bytes first. With --output it appends lines to FILE instead: bytes
        allocated, calls, location.

        If COMMAND is not Ruby, memprof shows functions of the program and its libraries
        instead of lines. It also records the processes that COMMAND forks, but other
        programs that COMMAND starts only if they are Ruby.

        The exit status is the command's, as for `memprof run`.

        FILE is a recording that `memprof run --malloc` or Memprof::Malloc.record wrote.
        memprof shows which lines had allocated the live memory at the peak and at the
        end, which made the most calls and the most temporary blocks, sizes, and memory
        over time. The process may still be running, or may have been killed. --tree
        shows call stacks instead, from the outermost frame down, --callers from the
        allocating line to its callers. --functions lists functions by what they
        allocated, with and without callees; --function shows the callers and callees of
        one. --format exports it to heaptrack (heaptrack_print FILE), Massif (ms_print
        FILE), flame graph scripts (collapsed), speedscope, the Firefox Profiler or
        pprof. With LATER, another recording, it shows what changed, by location.

        Examples:
          memprof malloc -- rake import
          memprof malloc --output malloc.txt --min-size 100000 -- puma -p 3000
          memprof malloc -- psql -c 'select 1'
          memprof malloc --limit 5 import.malloc
          memprof malloc --callers --value leaked import.malloc
          memprof malloc --function parse import.malloc
          memprof malloc before.malloc after.malloc
          memprof malloc --format heaptrack -o import.heaptrack import.malloc
      TEXT
      RECORDINGS_ONLY = %i[format value tree callers functions function from to suppressions].freeze
      # Views shown instead of the tables.
      VIEWS = %i[tree callers functions function].freeze
      private_constant :VIEWS, :RECORDINGS_ONLY

      def call(arguments)
        raise UsageError, "no command given; see `memprof help malloc`" if arguments.empty?
        return show(arguments) if recording?(arguments.first)
        refuse_options(RECORDINGS_ONLY, "is for recordings; see `memprof help malloc`")
        refuse_file(arguments.first)
        environment = { "MEMPROF_MALLOC" => settings }
        environment.merge!(preload(arguments.first)) unless Program.ruby?(arguments.first)
        run(arguments, environment)
      end

      private

      # Options after a command belong to the command; those after a recording are ours.
      def arrange(arguments)
        rest = parser.order(arguments)
        rest.any? && recording?(rest.first) ? parser.permute(rest) : rest
      end

      # Processes note in a file that they record, and that they have reported: a program killed by a signal,
      # or replaced by exec, would otherwise print nothing.
      def run(arguments, environment)
        Tempfile.create("memprof-malloc-") do |note|
          environment = environment.merge("MEMPROF_MALLOC_NOTE" => note.path)
          program = Program.new(arguments, environment, @terminal, feature: "memprof/malloc/autorun")
          status = program.run
          program.pid ? explain(arguments.first, note.read) : mention_recordings(arguments.first)
          status
        end
      end

      def explain(command, note)
        why =
          case note
          when /reported/ then return
          when /failed/ then "cannot write it"
          when /records/ then "ended by exec, #{Program.ruby?(command) ? "exit!" : "_exit"} or a signal"
          else "is linked statically, or ran no Ruby"
          end
        @terminal.warn("no report: #{command} #{why}")
      end

      # A file that isn't executable is meant as a recording.
      def refuse_file(path)
        return if Program.which(path) || File.executable?(path) || !(File.file?(path) || File.pipe?(path))

        check_readable(path, stdin: false)
        load_library
        refuse_other_kind(path, "a malloc recording", :malloc)
        raise UsageError, "#{path} is neither a command nor a malloc recording"
      end

      # A command that can't be started may be meant as a recording.
      def mention_recordings(path)
        if File.file?(path)
          @terminal.warn("#{path} is not a malloc recording, either")
        elsif path.end_with?(".malloc")
          @terminal.warn("no such recording either: #{path}")
        end
      end

      # The command may be a file with that name, but then it is not a recording.
      def recording?(path)
        return false unless File.file?(path)

        load_library
        Memprof::Malloc::Recording.file?(path)
      end

      def show(arguments)
        path, later = expect_arguments(arguments, "FILE", "[LATER]")
        refuse_options(given.keys - RECORDINGS_ONLY - %i[limit output],
          "is for commands; see `memprof help malloc`")
        check_views(later)
        return compare(path, later) if later

        recording = open_recording(path)
        case format = option(:format)
        when :text then deliver(text_of(recording))
        when :json then deliver("#{json_of(recording)}\n")
        when :markdown then deliver(markdown_of(recording))
        else export(recording, format)
        end
      end

      def check_views(later)
        refuse_options(VIEWS, "shows one recording; LATER is another one") if later
        views = given.keys & VIEWS
        raise UsageError, "--#{views[0]} and --#{views[1]} exclude each other" if views.size > 1
        return unless @options[:to] && @options[:to] < @options.fetch(:from, 0)

        invalid("--to", @options[:to], "a number of seconds that is not before --from")
      end

      def open_recording(path)
        check_readable(@options[:suppressions], stdin: false) if @options[:suppressions]
        suppressions = @options[:suppressions] && File.read(@options[:suppressions], encoding: "UTF-8")
        Memprof::Malloc::Recording.new(path, from: @options.fetch(:from, 0), to: @options[:to],
          suppressions: suppressions)
      rescue ArgumentError => e
        raise UsageError, "#{@options[:suppressions]}: #{e.message}"
      end

      def compare(path, later)
        comparison = open_recording(path).compare(open_recording(later))
        format = option(:format)
        unless %i[text json].include?(format)
          invalid("--format", format, "text or json: two recordings are compared")
        end
        return deliver("#{comparison.to_json}\n") if format == :json

        color = @terminal.color? && !@options[:output]
        deliver(comparison.to_s(**@options.slice(:limit), color: color))
      end

      def text_of(recording)
        color = @terminal.color? && !@options[:output]
        return recording.tree_text(direction, value: value, color: color) if direction

        return recording.to_s(**@options.slice(:limit), color: color) unless by_function?

        Memprof::Malloc::Recording::FunctionsText.new(recording.to_h, functions_of(recording),
          value: value, limit: option(:limit), color: color).to_s
      end

      def markdown_of(recording)
        view = (given.keys & VIEWS).first
        raise UsageError, "--#{view} cannot be shown as markdown: it is not a table" if view

        recording.to_markdown(**@options.slice(:limit))
      end

      def json_of(recording)
        return recording.to_json unless direction || by_function?

        rows = direction ? recording.tree(direction, value: value) : functions_of(recording)
        rows = rows.map { |row| { **row, estimated: true } } if recording.sample
        JSON.generate(rows)
      end

      def export(recording, format)
        refuse_binary_on_screen
        recording.write(@options[:output] || $stdout, format: format, value: value)
        0
      end

      def direction
        return :bottom_up if @options[:callers]

        :top_down if @options[:tree]
      end

      def by_function? = @options[:functions] || @options[:function]

      def functions_of(recording)
        name = @options[:function]
        rows = recording.functions(name, value: value)
        return rows unless name && rows.empty?

        raise UsageError, "no function #{name.inspect} has #{value} bytes in the recording; " \
          "--functions lists those that have some"
      end

      def value = option(:value)

      def settings
        output = @options[:output]
        invalid("--output", output, "a path without a comma") if output&.include?(",")
        table = option(:limit) unless output
        { dump_path: output, table: table, dump_min: @options[:min_size], sample: @options[:sample_bytes] }
          .compact.map { |name, value| "#{name}:#{value}" }.join(",")
      end

      def preload(command)
        load_library
        MallocPreload.environment or
          raise UsageError,
            "#{command} is not a Ruby program and cannot be recorded: #{MallocPreload::MISSING}"
      end
    end
  end
end
