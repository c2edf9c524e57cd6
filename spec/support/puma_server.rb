# frozen_string_literal: true

require "rbconfig"

# Rack apps in separate puma processes.
module PumaServers
  # Starts puma on a free port, yields the port, and stops puma.
  #
  # @param app [String] its `config.ru`
  # @param options [Array<String>] of puma
  # @param env [Hash{String => String}]
  def with_puma(app, *options, env: {})
    command = [RbConfig.ruby, "-I#{ChildRuby::LIB}",
      "-e", "require 'puma/cli'; Puma::CLI.new(ARGV).run", "--", *options,
      "--bind", "tcp://127.0.0.1:0", "--environment", "production", app]
    IO.popen({ "RUBYOPT" => nil, **env }, command, err: [:child, :out]) do |server|
      log = +""
      log << (server.gets || raise("puma does not start:\n#{log}")) until log =~ %r{Listening on http://127.0.0.1:(\d+)}
      yield Integer(Regexp.last_match(1))
    ensure
      log << stop_puma(server)
    end
  end

  # Stops a puma, and returns its output. Puma 6 sometimes deadlocks at exit, when only the waiting thread is
  # left: that is reported, and the spec does not wait.
  #
  # @param server [IO] to its process
  # @return [String]
  def stop_puma(server)
    Process.kill(:TERM, server.pid)
    reader = Thread.new { server.read.to_s }
    unless reader.join(10)
      warn "puma #{server.pid} did not end within 10 s, and was killed"
      Process.kill(:KILL, server.pid)
    end
    reader.value
  end
end
