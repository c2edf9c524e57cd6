# frozen_string_literal: true

require "json"
require "optparse"
require "rbconfig"

module Memprof
  module MemoryProfiler
    # The command of memory_profiler, for programs that call this class. `memprof run` does more.
    class CLI
      # The command's name in its help.
      BIN_NAME = "ruby-memory-profiler"
      # The output of `--version`.
      VERSION_INFO = "#{BIN_NAME}  #{MemoryProfiler::VERSION}".freeze
      # Exit status of a successful run.
      STATUS_SUCCESS = 0
      # Exit status of wrong usage.
      STATUS_ERROR = 1
      # The variable through which a command gets its options.
      ENVIRONMENT = "MEMPROF_MEMORY_PROFILER"
      LIBRARY = File.expand_path("../../..", __dir__)
      RUN = "run"
      private_constant :ENVIRONMENT, :LIBRARY, :RUN

      # Profiles the command that {#run} exec'ed.
      #
      # @api private
      def self.autorun
        options = JSON.parse(ENV.fetch(ENVIRONMENT, "{}"), symbolize_names: true)
        MemoryProfiler.start(options)
        pid = Process.pid
        at_exit { MemoryProfiler.stop&.pretty_print(**options) if pid == Process.pid }
      end

      # Profiles a script in this process, or execs the command after `run`.
      #
      # @param argv [Array<String>] options, and a script or `run` with a command
      # @return [Integer] exit status
      # @example
      #   require "memprof/memory_profiler"
      #   MemoryProfiler::CLI.new.run([]) # => 1
      def run(argv)
        options = {}
        parser = parser(options)
        script, *command = parser.order(argv)
        return refuse(parser, "#{VERSION_INFO}  |  ERROR: Must specify a script to run") unless script
        return become(options, command) if script == RUN

        parser.parse!(command)
        profile(script, options)
        STATUS_SUCCESS
      rescue OptionParser::ParseError => e
        refuse(parser, e.message)
      end

      private

      def refuse(parser, message)
        puts parser, "", message
        STATUS_ERROR
      end

      def profile(script, options)
        MemoryProfiler.start(options)
        load(script)
      ensure
        MemoryProfiler.stop&.pretty_print(**options)
      end

      def become(options, command)
        command.shift if command.first == "--"
        rubyopt = "-I#{LIBRARY} -rmemprof/compat/memory_profiler/autorun #{ENV["RUBYOPT"]}".strip
        exec({ ENVIRONMENT => JSON.generate(options), "RUBYOPT" => rubyopt }, *command)
      end

      def parser(options)
        OptionParser.new do |parser|
          parser.banner = "Usage: #{BIN_NAME} [options] SCRIPT | run [--] COMMAND"
          define_selection(parser, options)
          define_output(parser, options)
          parser.on_tail("-h", "--help", "show this help") { leave(parser) }
          parser.on_tail("-v", "--version", "show the version") { leave(VERSION_INFO) }
        end
      end

      def define_selection(parser, options)
        parser.on("-m", "--max=NUM", Integer, "entries of each group (default: 50)") { |n| options[:top] = n }
        parser.on("--classes=CLASSES", Array, "only these classes") { |names| options[:trace] = names }
        parser.on("--ignore-files=REGEXP", "leave out files that match") { |re| options[:ignore_files] = re }
        parser.on("--allow-files=FILES", Array, "only these files") { |list| options[:allow_files] = list }
      end

      def define_output(parser, options)
        parser.on("-o", "--out=FILE", "write to a file") { |file| options[:to_file] = file }
        parser.on("--[no-]color", "with colors") { |color| options[:color_output] = color }
        %w[retained allocated].each do |kind|
          parser.on("--#{kind}-strings=NUM", Integer, "#{kind} strings to print (default: 50)") do |number|
            options[:"#{kind}_strings"] = number
          end
        end
        parser.on("--[no-]detailed", "with all groups (default)") { |all| options[:detailed_report] = all }
        parser.on("--scale-bytes", "with units") { options[:scale_bytes] = true }
        parser.on("--normalize-paths", "paths from the gem on") { options[:normalize_paths] = true }
        parser.on("--pretty", "with units, paths from the gem on") do
          options[:scale_bytes] = options[:normalize_paths] = true
        end
      end

      def leave(text)
        puts text
        exit
      end
    end
  end
end
