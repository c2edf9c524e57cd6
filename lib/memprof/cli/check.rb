# frozen_string_literal: true

require "fileutils"
require "tmpdir"
require_relative "../autorun/settings"

module Memprof
  module CLI
    # `memprof check`: a command measured against a baseline.
    class Check < Command
      include ComparisonOptions

      SUMMARY = "fails if a command allocates or retains more than before"
      USAGE = "--baseline FILE [OPTIONS] [--] COMMAND [ARGUMENTS]"
      DETAILS = <<~TEXT
        Runs COMMAND twice, as `memprof run` does, and compares it with FILE, a JSON
        report of `memprof run` or a baseline that --update has written. If a limit is
        exceeded, it shows which lines allocate or retain more, and exits with 1.

        No two runs allocate exactly the same, so a difference counts only if it shows
        between every run and every run of the baseline. More --runs reduce the noise.

        With --update the command's runs become the baseline, and nothing is compared.

        The command's own output goes to stderr. If the command fails, memprof exits
        with its status without comparing or writing anything. If the command runs
        another Ruby, as rake runs rspec, memprof compares the process that allocated
        most.

        Examples:
          memprof check --baseline memory.json --update -- rake spec
          memprof check --baseline memory.json --max-increase 2% -- rake spec
          memprof check --baseline memory.json --max-retained 10MiB -f github -- rspec
      TEXT
      def call(arguments)
        raise UsageError, "no command given; see `memprof help check`" if arguments.empty?
        raise UsageError, "--baseline is missing; see `memprof help check`" unless @options[:baseline]

        check_paths
        load_library
        @directory = Dir.mktmpdir("memprof-check-").force_encoding(Encoding::UTF_8)
        files = measure(arguments)
        return files if files.is_a?(Integer)

        @options[:update] ? update(files) : judge(files)
      ensure
        FileUtils.rm_rf(@directory) if @directory
      end

      private

      # Fails before the command runs, which may take long.
      def check_paths
        if @options[:update] then output_path(@options[:baseline], "--baseline")
        else
          check_baseline(@options[:baseline])
        end
        limits
      end

      # The first run has no baseline.
      def check_baseline(path)
        return check_report(path) if File.exist?(path)

        raise UsageError, "there is no baseline #{path}; " \
          "write it with `memprof check --baseline #{Suggestion.word(path)} --update -- COMMAND`"
      end

      # The reports of all runs; the exit status of the command if it fails.
      def measure(arguments)
        Array.new(option(:runs)) do |index|
          directory = File.join(@directory, (index + 1).to_s)
          Dir.mkdir(directory)
          program = Program.new(arguments, settings(directory).to_env, @terminal, redirect: { out: :err })
          status = program.run
          return failed(status) unless status.zero?

          report = Reports.new(directory, @terminal, shown: false).main_path(program.pid) if program.pid
          report || raise(UsageError, "no report: the command ran no Ruby, or ended by exit!")
        end
      end

      def settings(directory)
        Autorun::Settings.new(format: :json, output: File.join(directory, "report.json"),
          sample: @options[:sample], run_directory: directory, run_parent: Process.pid)
      end

      def failed(status)
        @terminal.warn("the command failed with exit status #{status}; nothing compared")
        status
      end

      def update(files)
        require_relative "../check/baseline"
        Memprof::Check::Baseline.write(@options[:baseline], files)
        @terminal.warn("wrote #{@options[:baseline]}: #{Units.plural(files.size, "run")}")
        0
      end

      def limits
        Memprof::Check::Limits.new(max_increase: option(:max_increase), max_retained: @options[:max_retained])
      end

      def judge(files) = conclude(compared([@options[:baseline]], files), limits)
    end
  end
end
