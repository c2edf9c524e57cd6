# frozen_string_literal: true

require "tmpdir"
require_relative "../autorun/settings"
require_relative "../printable"

module Memprof
  module CLI
    # `memprof run`: tracks a command, and every Ruby process it spawns, from start to end.
    class Run < Command
      SUMMARY = "runs a command and reports what its lines allocate and retain"
      USAGE = "[OPTIONS] [--] COMMAND [ARGUMENTS]"
      DETAILS = <<~TEXT
        COMMAND is anything that runs Ruby: ruby, rake, puma, a script. When it ends,
        memprof prints a report on the process that allocated most (for `rake spec`,
        rspec). Every other Ruby process that COMMAND spawns or forks is tracked as
        well, and writes its report to a file, which memprof names on stderr at the end.
        A forked process reports its own allocations, not its parent's.

        With --output all reports go to files and none to stdout: the command's own to
        FILE, that of process 4711 to FILE with .4711 before the extension. A %p in FILE
        is replaced by the process id. Without --format the extension selects it: .json,
        .md, .folded, .speedscope.json, .firefox.json, .pb.gz; any other is text.

        With --signal a process also writes a report whenever it receives that signal,
        to a numbered file (report-1.txt), and continues. Choose a signal that the
        program does not use, such as URG. memprof passes signals on to the command.

        With --after-boot tracking starts in each process at its first request (puma,
        unicorn, webrick), RSpec example, test (Minitest, test-unit), Sidekiq job or
        Rake task (after the task environment, which boots Rails), at the code of rails
        runner, or when the program calls Memprof.booted.

        With --peak the report begins with the moment of peak memory use: which lines
        had allocated the objects that existed then (live or not yet collected), RSS,
        malloc and slots.

        With --trace the report shows instead what each process did as a whole, as
        Memprof.trace does: objects, GC, system calls, SQL, caches, HTTP.

        With --malloc memprof writes recordings of malloc instead of reports: the first
        Ruby process writes to FILE (--output), every other one to FILE with its process
        id. Each allocation has up to 64 calling frames (--stack); --native includes
        native frames. --sample-bytes records only a sample, at a fraction of the cost,
        and memprof shows estimates. Programs other than Ruby are recorded with native
        frames. `memprof malloc FILE` and `memprof web FILE` show recordings. With
        --addresses, `memprof core --recording FILE CORE` shows which line allocated
        each block of a core file.

        The exit status is the command's, 128 + N if signal N ended it, 126 or 127 if it
        cannot be started. A process ended by exit! or SIGKILL cannot report.

        Examples:
          memprof run rake spec
          memprof run --limit 10 --ignore-files /gems/ script.rb
          memprof run -f speedscope -o app.speedscope.json -- ruby -Ilib app.rb
          memprof run -o base.json -- rake spec
          memprof run --signal URG --output report.txt -- puma -p 3000
          memprof run --after-boot -- rspec
          memprof run --peak -- rake import
          memprof run --trace rake import
          memprof run --malloc -o import.malloc -- rake import
          memprof run --malloc --sample-bytes 512KiB -o web.malloc -- puma -p 3000
          memprof run --malloc -o query.malloc -- psql -c 'select 1'
      TEXT

      # Signals that Ruby reserves, that cannot be caught, or that must end a program.
      REFUSED_SIGNALS = %w[EXIT KILL STOP SEGV BUS ILL FPE VTALRM CHLD CLD INT TERM].freeze
      private_constant :REFUSED_SIGNALS

      # The name of a signal that can be caught; nil for any other text.
      def self.signal(text)
        name = text.upcase.delete_prefix("SIG")
        name if Signal.list.key?(name) && !REFUSED_SIGNALS.include?(name)
      end

      def call(arguments)
        raise UsageError, "no command given; see `memprof help run`" if arguments.empty?

        return MallocRecording.new(@terminal, @options, given).run(arguments) if @options[:malloc]

        refuse_options(%i[native addresses sample_bytes], "needs --malloc")
        check_sample
        check_tracing if @options[:trace]
        refuse_binary_on_screen
        @options[:format] ||= format_of_output if @options[:output]
        output = output_path(@options[:output]) if @options[:output]
        directory = temporary_directory
        reports = Reports.new(directory, @terminal, shown: output.nil?)
        settings = settings(output || default_output(directory), directory, shown: output.nil?)
        program = Program.new(arguments, settings.to_env, @terminal, signal: settings.signal)
        status = program.run
        reports.show(program.pid, settings) if program.pid
        status
      ensure
        reports&.clean
      end

      private

      # `--trace CLASS` is what `--class CLASS` was called.
      def arrange(arguments)
        rest = super
        name = rest.first
        return rest unless @options[:trace] && Flag::ClassName === name && !command?(name)

        @terminal.renamed("--trace CLASS", "--class CLASS")
        @options.delete(:trace)
        (@options[:class] ||= []) << name
        arrange(rest.drop(1))
      end

      def command?(name) = Program.which(name) || File.exist?(name)

      def settings(output, directory, shown:)
        options = @options.slice(*Autorun::Settings::READERS.keys)
          .merge(trace: @options[:class], tracing: @options[:trace])
        Autorun::Settings.new(**options, output: output, color: color(shown), run_directory: directory,
          run_parent: Process.pid)
      end

      # Only output on a screen is colored, unless color is requested.
      def color(shown)
        choice = option(:color)
        return choice unless choice == :auto

        shown && @terminal.color? ? :main : :never
      end

      def format_of_output = Autorun::Settings.format_of(@options[:output]) || option(:format)

      def default_output(directory)
        extension = Autorun::Settings::EXTENSIONS.fetch(option(:format))
        File.join(directory, "report.%p#{extension}")
      end

      # Options of the other report make no sense here.
      def check_tracing
        other = given.keys - %i[trace output format after_boot]
        other << :format unless [nil, :json].include?(given[:format])
        refuse_options(other, "cannot be used with --trace")

        @options[:format] = :json
      end

      def temporary_directory
        Dir.mktmpdir("memprof-run-").force_encoding(Encoding::UTF_8)
      rescue ArgumentError => e # no usable temporary directory
        raise UsageError, "#{e.message}; set TMPDIR to a writable directory"
      end
    end
  end
end
