# frozen_string_literal: true

require "fileutils"
require "rbconfig"
require_relative "scratch"
require_relative "../boot/recorded"

module Memprof
  module CLI
    # `memprof boot`: the cost of each file that a program requires.
    class Boot < Command
      SUMMARY = "runs a command and shows what each required file costs"
      USAGE = "[OPTIONS] [--] [COMMAND] [ARGUMENTS]"
      DETAILS = <<~TEXT
        Runs COMMAND, any Ruby program. When it ends, memprof prints a tree of its
        requires, the largest first: the bytes and objects that each file allocated and
        that survive a GC, its code (instruction sequences), RSS growth, and time. Total
        includes the files that a file requires in turn; Self does not.

        Without COMMAND memprof boots the Rails app (`bundle exec rails runner 1`). If
        there is none, it requires the gems of the Gemfile.

        Files with less than 1 % of the total are left out. --min-size sets another
        limit, as does the environment variable CUT_OFF (in MiB) of derailed_benchmarks.

        Files that are loaded after the feature --until (config/environment) are listed
        separately. If COMMAND starts more processes, only the first counts. The exit
        status is the command's, as for `memprof run`.

        Examples:
          memprof boot
          memprof boot -- bundle exec rails runner 1
          memprof boot --min-size 1MB -f collapsed -o boot.folded -- ruby app.rb
      TEXT
      # A Rails app has booted once this is loaded.
      ENVIRONMENT = "config/environment"
      GEMS = <<~RUBY
        $PROGRAM_NAME = "Bundler.require"
        require "bundler/setup"
        Bundler.require(:default, ENV["RAILS_ENV"] || "production")
      RUBY
      private_constant :ENVIRONMENT, :GEMS

      def call(arguments) = run(arguments.empty? ? default_command : arguments)

      private

      def default_command
        return %w[bundle exec rails runner 1] if File.file?("#{ENVIRONMENT}.rb")
        return [RbConfig.ruby, "-e", GEMS] if File.file?("Gemfile")

        raise UsageError,
          "no command given, and no Rails app or Gemfile here; see `memprof help boot`"
      end

      def run(command)
        minimum = minimum() # an invalid one must fail before the command runs
        Scratch.directory("memprof-boot-") do |directory|
          program = Program.new(command, environment(directory), @terminal, feature: "memprof/boot/autorun")
          status = program.run
          numbers = File.join(directory, program.pid.to_s)
          next status unless program.pid
          next missing(status) unless File.file?(numbers)

          present(numbers, minimum).zero? ? status : 2
        end
      end

      def environment(directory)
        { Memprof::Boot::Recorded::DIRECTORY => directory,
          Memprof::Boot::Recorded::UNTIL => @options.fetch(:until, ENVIRONMENT) }
      end

      def minimum
        return @options[:min_size] if @options[:min_size]

        cut_off = ENV.fetch("CUT_OFF", "")
        cut_off.empty? ? nil : (Float(cut_off) * (1 << 20)).ceil
      rescue ArgumentError
        raise UsageError, "invalid CUT_OFF \"#{cut_off}\"; expected a number of MiB"
      end

      def missing(status)
        @terminal.warn("no numbers: the command ran no Ruby, or was ended by exit! or a signal")
        status.zero? ? ExitStatus::FOUND : status
      end

      def present(numbers, minimum)
        load_library
        require_relative "../boot/tree"
        tree = Memprof::Boot::Tree.load(numbers)
        deliver(content(tree, minimum))
      end

      def content(tree, minimum)
        case output_format
        when :json then generate(tree.to_h)
        when :collapsed, :speedscope then flame(tree)
        else
          BootPage.new(tree, minimum: minimum, limit: option(:limit)).to(output_format, **screen)
        end
      end

      def flame(tree)
        require_relative "../boot/flame"
        flame = Memprof::Boot::Flame.new(tree)
        output_format == :collapsed ? flame.collapsed : generate(flame.speedscope)
      end

      def generate(hash)
        require "json"
        "#{JSON.generate(hash, max_nesting: 0)}\n"
      end
    end
  end
end
