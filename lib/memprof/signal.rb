# frozen_string_literal: true

# Makes the process that loads it respond to a signal with a dump of its heap, and to `memprof dump`, `start`,
# `stop` and `stats`.
#
#   require "memprof/signal"   # and then: kill -URG PID, or: memprof dump PID
#
# Environment variables: MEMPROF_SIGNAL (default URG), MEMPROF_DIR (default: the system's directory for
# temporary files), MEMPROF_TRACK (on, off, or sample:N; default on), MEMPROF_DUMP_FORMAT,
# MEMPROF_DUMP_VALUES, MEMPROF_DUMP_COMPRESSION.

module Memprof
  module OnSignal
    # Bundler support, for `RUBYOPT=-rmemprof/signal`. `bundle exec` starts a program with only the gems of
    # its Gemfile, so Ruby would not find memprof and would fail to start. And memprof must not load default
    # gems before Bundler has chosen their versions.
    module Bundle
      LIB = File.expand_path("..", __dir__)
      COMMANDS = %w[bundle bundler].freeze
      PATH = "RUBYLIB"
      # A setting of Bundler: `bundle exec` starts a separate process, even for a Ruby script.
      EXEC = "BUNDLE_DISABLE_EXEC_LOAD"
      private_constant :LIB, :COMMANDS, :PATH, :EXEC

      def self.command?(program = $PROGRAM_NAME) = COMMANDS.include?(File.basename(program))

      # Lets child processes find memprof, if they are to load it.
      def self.prepare(env, command: command?)
        return unless env["RUBYOPT"].to_s.include?("memprof/signal")

        paths = env[PATH].to_s.split(File::PATH_SEPARATOR)
        env[PATH] = [*paths, LIB].join(File::PATH_SEPARATOR) unless paths.include?(LIB)
        env[EXEC] = "true" if command
      end

      # Lets this process find memprof, however it was found.
      def self.load_path
        $LOAD_PATH.push(LIB) unless $LOAD_PATH.include?(LIB)
      end
    end
  end
end

Memprof::OnSignal::Bundle.prepare(ENV)
unless Memprof::OnSignal::Bundle.command?
  Memprof::OnSignal::Bundle.load_path
  require "memprof"
  require_relative "signal/listener"

  Memprof::OnSignal.start(ENV)
end
