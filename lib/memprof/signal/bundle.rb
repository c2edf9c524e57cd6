# frozen_string_literal: true

module Memprof
  module OnSignal
    # Bundler, for who asks by `RUBYOPT=-rmemprof/signal`. `bundle exec` starts a program with the gems of its
    # Gemfile alone, so Ruby would find no memprof there, and not start. And what memprof needs of the gems
    # that come with Ruby must not be loaded before Bundler has chosen their versions.
    module Bundle
      LIB = File.expand_path("../..", __dir__)
      COMMANDS = %w[bundle bundler].freeze
      PATH = "RUBYLIB"
      # A setting of Bundler: have `bundle exec` start a process of its own, also for a script of Ruby's.
      EXEC = "BUNDLE_DISABLE_EXEC_LOAD"
      private_constant :LIB, :COMMANDS, :PATH, :EXEC

      def self.command?(program = $PROGRAM_NAME) = COMMANDS.include?(File.basename(program))

      # Has the processes that this one starts find memprof, if they are to load it.
      def self.prepare(env, command: command?)
        return unless env["RUBYOPT"].to_s.include?("memprof/signal")

        paths = env[PATH].to_s.split(File::PATH_SEPARATOR)
        env[PATH] = [*paths, LIB].join(File::PATH_SEPARATOR) unless paths.include?(LIB)
        env[EXEC] = "true" if command
      end

      # Has this process find memprof, however it was found.
      def self.load_path
        $LOAD_PATH.push(LIB) unless $LOAD_PATH.include?(LIB)
      end
    end
  end
end
