# frozen_string_literal: true

require "json"
require_relative "child_ruby"
require_relative "servers/mariadb"
require_relative "servers/memcached"
require_relative "servers/postgres"
require_relative "servers/redis"

# Real servers for specs: each starts on first use, and ends with the suite.
module Servers
  KINDS = { mariadb: MariaDB, memcached: Memcached, postgres: Postgres, redis: Redis }.freeze
  # Prepended to each program of a spec: reports and statistics come back as JSON.
  PRELUDE = <<~RUBY
    require "json"
    require "memprof"
    require "stringio"
    require "tmpdir"

    # The report of a block as a Hash.
    def traced(**options, &block)
      report = StringIO.new
      Memprof.trace(report, **options, &block)
      JSON.parse(report.string)
    end

    # The facts for the spec.
    def emit(**facts) = puts(JSON.generate(facts))
  RUBY
  @running = {}
  @can = {}

  class << self
    include ChildRuby

    # @param name [Symbol] a key of {KINDS}
    # @return [Server] running
    def [](name)
      @running[name] ||= begin
        stop_at_exit if @running.empty?
        KINDS.fetch(name).new.tap do |server|
          server.start
        rescue StandardError
          server.stop
          raise
        end
      end
    end

    # The reason why a spec can't run, or nil.
    def obstacle(server, client, library)
      missing = KINDS.fetch(server).obstacle if server
      missing ||= "this Ruby has no library #{client}" if client && !can?("require #{client.inspect}")
      return missing if missing || library.nil? || can?("Fiddle.dlopen(#{library.inspect})", "-rfiddle")

      "#{library} is not installed"
    end

    private

    def can?(code, *ruby_args)
      @can.fetch(code) { @can[code] = run_ruby(code, ruby_args: ruby_args).success? }
    end

    # Not in a process forked by the one that started them.
    def stop_at_exit
      starter = Process.pid
      at_exit { @running.each_value(&:stop) if Process.pid == starter }
    end
  end

  # Skips the examples of a group whose server or client is missing. Fails on CI where all of them are
  # required, so that they are not silently skipped everywhere.
  #
  # @param server [Symbol, nil] a key of {KINDS}; nil for a client that needs none
  # @param client [String, nil] the feature to require
  # @param library [String, nil] the shared library to load
  def need(server: nil, client: nil, library: nil)
    reason = Servers.obstacle(server, client, library) or return
    raise "CI must have this: #{reason} (see bin/setup)" if ENV["CI"] && RUBY_VERSION.start_with?("3.1")

    skip reason
  end

  # Runs a program that traces calls of a client.
  #
  # @param code [String] may call `traced` and must call `emit` once
  # @param server [Symbol, nil] required server
  # @return [Hash] the facts of `emit`
  def client_program(code, server: nil, env: {})
    environment = server ? Servers[server].environment : {}
    stdout, stderr, status = run_ruby("#{PRELUDE}\n#{code}", env: environment.merge(env))
    expect(stderr).to eq("")
    expect(status).to be_success
    JSON.parse(stdout.lines.last.to_s) # clients may have logged before it
  end

  # The exception in the record of a traced request whose code raises; takes the same arguments as
  # {#client_program}, and the code before the request.
  def exception_in_request(code, before:, **options)
    client_program(<<~RUBY, **options)
      require "memprof"
      require "json"
      #{before}
      io = StringIO.new
      $stdout, out = io, $stdout
      begin
        Memprof.trace_request({}, tracers: :gc) { #{code} }
      rescue StandardError
        nil
      end
      $stdout = out
      emit(**JSON.parse(io.string, symbolize_names: true).slice(:exception, :exception_code))
    RUBY
  end
end
