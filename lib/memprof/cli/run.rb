# frozen_string_literal: true

require "tmpdir"
require_relative "../autorun/settings"
require_relative "../printable"

module Memprof
  module CLI
    # `memprof run`: a command, and every Ruby process that comes of it, tracked from the first line to the
    # last.
    class Run < Command
      SUMMARY = "runs a command, reports what its lines allocate and retain"
      USAGE = "[OPTIONS] [--] COMMAND [ARGUMENTS]"
      DETAILS = <<~TEXT
        COMMAND is anything that runs Ruby: ruby, rake, puma, a script. memprof prints
        its report to stdout when it ends, or the report of another Ruby that it runs,
        if that one allocates more, as when rake runs rspec. Every other Ruby process
        that it spawns or forks is tracked, too, and writes its report to its own file,
        which is named on stderr at the end. A forked process reports its own
        allocations, not those inherited from its parent.

        With --output all reports go to files and none to stdout: the command's own to
        PATH, that of process 4711 to PATH with .4711 before the extension. A %p in PATH
        is replaced by the process id. Without --format the extension selects it: .json,
        .md, .folded, .speedscope.json, .firefox.json, .pb.gz; any other means text.

        With --signal a process also reports whenever it gets that signal, to a numbered
        file (report-1.txt), and continues. Choose one that the program does not use;
        URG is a good choice. Signals sent to memprof are passed on to the command.

        With --after-boot tracking starts in each process at its first request (puma,
        unicorn, webrick), RSpec example, test (Minitest, test-unit) or Sidekiq job, or
        when the program calls Memprof.booted.

        With --peak the report begins with the moment when the process used most memory:
        which lines had allocated the objects that existed then (live or not yet
        collected), RSS, malloc and slots.

        With --trace the report shows instead what each process did as a whole, as
        Memprof.trace does: objects, GC, system calls, SQL, caches, HTTP.

        With --malloc memprof writes recordings of malloc instead of reports: the first
        Ruby process that starts to the FILE that --output names, each other one to FILE
        with its process id. Each allocation has up to 64 calling frames, or as many as
        --stack says, with --native also native ones. With --sample it records samples
        only, at a fraction of the cost, and memprof shows estimates. A program other
        than Ruby is recorded with native frames. `memprof malloc FILE` and `memprof web
        FILE` show recordings. With --addresses, `memprof core --recording FILE CORE`
        says which line allocated each block of a core file.

        The exit status is the command's, 128 + N if signal N ended it, 126 or 127 if it
        could not be started. A process ended by exit! or SIGKILL cannot report.

        Examples:
          memprof run rake spec
          memprof run --limit 10 --ignore-files /gems/ script.rb
          memprof run -f speedscope -o app.speedscope.json -- ruby -Ilib app.rb
          memprof run -o base.json -- rake spec
          memprof run --signal URG --output report.txt -- puma -p 3000
          memprof run --after-boot -- rspec
          memprof run --peak -- rake import
          memprof run --trace -- rake import
          memprof run --malloc -o import.malloc -- rake import
          memprof run --malloc --sample 512KiB -o web.malloc -- puma -p 3000
          memprof run --malloc -o query.malloc -- psql -c 'select 1'
      TEXT

      FORMATS = Autorun::Settings::EXTENSIONS.keys
      # Those that Ruby keeps for itself, those that cannot be caught, and those that have to end a program.
      REFUSED_SIGNALS = %w[EXIT KILL STOP SEGV BUS ILL FPE VTALRM CHLD CLD INT TERM].freeze
      VALUES = %i[allocated_bytes allocated_objects retained_bytes retained_objects].freeze
      # What names of classes, and of the VM's internal objects, begin with.
      CLASS = /\A(?:#?<|\p{Lu}|\p{Lt})/
      private_constant :FORMATS, :REFUSED_SIGNALS, :VALUES, :CLASS

      def call(arguments)
        raise UsageError, "no command given; see `memprof help run`" if arguments.empty?

        return MallocRecording.new(@terminal, @options, given).run(arguments) if @options[:malloc]

        refuse_options(%i[native addresses], "needs --malloc")
        @options[:sample] &&= one_in(@options[:sample])

        check_tracing if @options[:tracing]
        refuse_binary_on_screen
        @options[:format] ||= Autorun::Settings.format_of(@options[:output]) || :text if @options[:output]
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

      def define_options
        define_output_options
        define_tracking_options
        define_filter_options
      end

      def define_output_options
        formats(FORMATS, "text (default), json, markdown, memory_profiler;",
          "with call stacks: collapsed, speedscope, firefox,", "pprof")
        text("-o", "--output PATH", "write to files; see below (default: stdout)", :output)
        count("--limit N", "first N entries of each table (default: 20; for",
          "json and memory_profiler 50)", :limit)
        one_of(VALUES, "--value VALUE", "what collapsed, speedscope and firefox draw:",
          "allocated_bytes (default), allocated_objects,", "retained_bytes, retained_objects", :value)
        flag("--scale-bytes", "memory_profiler: 16.66 kB instead of 16660", :scale_bytes)
        one_of(%i[auto always never], "--color WHEN", "auto (default), always, never", :color)
      end

      def define_tracking_options
        checked("--signal SIGNAL", "also report on this signal (default: none)", :signal,
          "one that can be caught, such as URG, USR1 or USR2") { |text| signal(text) }
        flag("--after-boot", "start tracking at the first request, example,",
          "test or job, or at Memprof.booted", :after_boot)
        flag("--peak", "also find when memory was largest, and which lines", "had allocated it", :peak)
        flag("--malloc", "record malloc; see below", :malloc)
        flag("--native", "with --malloc: native frames, too", :native)
        flag("--addresses", "with --malloc: addresses of blocks, too", :addresses)
        text("--sample N", "track one object in N, scale up (default: 1);",
          "with --malloc: a block in N bytes (512KiB)", :sample)
        count("--stack N", "record N calling frames per object (default: 1; 64",
          "with --malloc and formats with call stacks)", :stack, most: MOST_FRAMES)
      end

      def one_in(text)
        number = Integer(text, exception: false)
        invalid("--sample", text, "a number of at least 1") unless number&.positive?
        number > MOST ? invalid("--sample", text, "a number of at most #{MOST}") : number
      end

      def define_filter_options
        regexp("--ignore-files RE", "leave out files whose path matches", :ignore_files)
        regexp("--allow-files RE", "leave out files whose path does not match", :allow_files)
        parser.on("--trace [CLASS]", "only objects of this class (may be repeated);",
          "without CLASS, before --: see below") do |name|
          name ? (@options[:trace] ||= []) << class_name(name) : @options[:tracing] = true
        end
        flag("--internal", "list what the VM allocates for itself: <iseq>,",
          "<callcache> and so on, which is only summed up", :internal)
        flag("--no-internal", "leave it out of totals, too", :no_internal)
      end

      # A command in its place is meant to be traced.
      def class_name(text)
        return text if CLASS.match?(Printable.utf8(text))

        invalid("--trace", text, "a class; to trace what a command does: --trace -- COMMAND")
      end

      def regexp(*definition, name)
        parser.on(*definition) do |source|
          @options[name] = Regexp.new(source)
        rescue RegexpError => e
          invalid(definition, source, "a regular expression (#{e.message})")
        end
      end

      def settings(output, directory, shown:)
        options = @options.slice(*Autorun::Settings::READERS.keys)
        Autorun::Settings.new(**options, output: output, color: color(shown), run_directory: directory,
          run_parent: Process.pid)
      end

      # Only what is printed on a screen is coloured, unless colour is asked for.
      def color(shown)
        choice = @options.fetch(:color, :auto)
        return choice unless choice == :auto

        shown && @terminal.color? ? :main : :never
      end

      def default_output(directory)
        extension = Autorun::Settings::EXTENSIONS.fetch(@options.fetch(:format, :text))
        File.join(directory, "report.%p#{extension}")
      end

      # What shapes the other report has no meaning for this one.
      def check_tracing
        other = given.keys - %i[tracing output format after_boot]
        other << :format unless [nil, :json].include?(given[:format])
        refuse_options(other, "cannot be used with --trace")

        @options[:format] = :json
      end

      def temporary_directory
        Dir.mktmpdir("memprof-run-").force_encoding(Encoding::UTF_8)
      rescue ArgumentError => e # that there is no place for one
        raise UsageError, "#{e.message}; set TMPDIR to a writable directory"
      end

      def signal(text)
        name = text.upcase.delete_prefix("SIG")
        name if Signal.list.key?(name) && !REFUSED_SIGNALS.include?(name)
      end
    end
  end
end
