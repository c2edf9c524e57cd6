# frozen_string_literal: true

module Memprof
  # Bundler support, for `RUBYOPT=-rmemprof/signal` and `-rmemprof/agent`. `bundle exec` starts a program with
  # only the gems of its Gemfile, so Ruby would not find memprof and would fail to start. And memprof must not
  # load default gems before Bundler has chosen their versions.
  module BundlerExec
    LIB = File.expand_path("..", __dir__)
    COMMANDS = %w[bundle bundler].freeze
    PATH = "RUBYLIB"
    # A setting of Bundler: `bundle exec` starts a separate process, even for a Ruby script.
    EXEC = "BUNDLE_DISABLE_EXEC_LOAD"
    private_constant :LIB, :COMMANDS, :PATH, :EXEC

    def self.command?(program = $PROGRAM_NAME) = COMMANDS.include?(File.basename(program))

    # Lets child processes find memprof, if they are to load this feature of it.
    def self.prepare(env, feature, command: command?)
      return unless env["RUBYOPT"].to_s.include?(feature)

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
