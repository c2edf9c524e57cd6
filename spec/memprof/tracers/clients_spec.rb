# frozen_string_literal: true

require "json"

# The clients are stood in for by classes with the same methods, each in a process of its own.
RSpec.describe "tracers of client gems" do
  def trace(code)
    result = run_ruby("require 'memprof'\nrequire 'stringio'\n#{code}")
    expect(result.stderr).to eq("")
    reports = result.stdout.split(/^(?=\{)/).map { |text| JSON.parse(text) }
    reports.one? ? reports.first : reports
  end

  redis = <<~RUBY
    class Redis
      class Client
        def call(command) = process([command]) { "OK" }
        def process(commands) = yield
      end
    end
  RUBY

  it "traces a client that was loaded before" do
    report = trace(<<~RUBY)
      #{redis}
      Memprof.trace(tracers: :redis) { p = Redis::Client.new; 3.times { p.call([:get, "a"]) }; p.call([["CLIENT", "x"]]) }
    RUBY
    expect(report["redis"]).to include("calls" => 4, "time" => be_a(Float),
      "commands" => { "get" => include("calls" => 3), "client" => include("calls" => 1) })
  end

  it "records which server the commands go to" do
    report = trace(<<~RUBY)
      #{redis}
      class Redis::Client
        attr_reader :host, :port, :path
        def initialize(host, port, path = nil) = (@host, @port, @path = host, port, path)
      end
      class RedisClient
        module ConnectionMixin; def call(command, timeout) = "OK"; end
        class RubyConnection
          include ConnectionMixin
          def initialize(config) = @config = config
        end
      end
      config = Struct.new(:host, :port, :path).new("cache", 6380)
      Memprof.trace(tracers: :redis) do
        Redis::Client.new("localhost", 6379).call([:get])
        Redis::Client.new("localhost", 6379, "/run/redis.sock").call([:get])
        2.times { RedisClient::RubyConnection.new(config).call(["GET"], nil) }
      end
    RUBY
    expect(report["redis"]["servers"].transform_values { |server| server["calls"] })
      .to eq("localhost:6379" => 1, "/run/redis.sock" => 1, "cache:6380" => 2)
  end

  it "traces a client that is loaded in the middle of a trace, and later" do
    reports = trace(<<~RUBY)
      Memprof.trace(tracers: :redis) { Redis = Class.new; eval(#{redis.inspect}); Redis::Client.new.call([:set]) }
      Memprof.trace(tracers: :redis) { Redis::Client.new.call([:set]) }
      Redis::Client.new.call([:set])
    RUBY
    expect(reports.map { |report| report["redis"]["calls"] }).to eq([1, 1])
  end

  it "loads nothing by itself" do
    expect(trace(<<~RUBY)).to eq("redis" => {})
      autoload :Redis, "/nowhere/redis"
      class RedisClient; autoload :ConnectionMixin, "/nowhere/mixin"; end
      Memprof.trace(tracers: :redis) { nil }
    RUBY
  end

  it "shares the time of a pipeline among its commands, with redis-client" do
    report = trace(<<~RUBY)
      class RedisClient
        module ConnectionMixin
          def call(command, timeout) = "OK"
          def call_pipelined(commands, timeouts, exception: true) = sleep(0.05) && commands
        end
        class RubyConnection; include ConnectionMixin; end
      end
      Memprof.trace(tracers: :redis) do
        connection = RedisClient::RubyConnection.new
        connection.call(["GET", "a"], nil)
        connection.call_pipelined([["SET", "a", "1"], ["set", "b", "2"]], nil, exception: false)
      end
    RUBY
    expect(report["redis"]["commands"]).to include("get" => include("calls" => 1),
      "set" => include("calls" => 2))
    expect(report["redis"]["commands"]["set"]["time"]).to be_between(0.05, 20)
    expect(report["redis"]["calls"]).to eq(3)
  end

  it "shows calls of dalli by name and by what was answered" do
    report = trace(<<~RUBY)
      module Dalli
        class Client
          def get(key) = perform(:get, key)
          def set(key, value) = perform(:set, key, value)
          def fail = perform(:incr, "x")
          def get_multi(*keys) = { "a" => 1 }
          private
          def perform(operation, *rest)
            raise IOError if operation == :incr
            { [:get, "a"] => 1, [:set, "a"] => 17 }.fetch([operation, rest.first], operation == :set ? false : nil)
          end
        end
      end
      Memprof.trace(tracers: :memcache) do
        client = Dalli::Client.new
        client.get("a"); client.get("b"); client.set("a", 1); client.set("b", 1); client.get_multi("a", "b", "c")
        begin; client.fail; rescue IOError; end
      end
    RUBY
    responses = report["memcache"].transform_values { |operation| operation["responses"] }
    expect(responses).to eq("get" => { "success" => 1, "notfound" => 1 }, "increment" => { "error" => 1 },
      "set" => { "success" => 1, "notstored" => 1 }, "mget" => { "success" => 1, "notfound" => 2 })
    expect(report["memcache"]["get"]["calls"]).to eq(2)
  end

  it "shows queries of trilogy by statement" do
    report = trace(<<~RUBY)
      class Trilogy; def query(sql) = sql; end
      Memprof.trace(tracers: :mysql) do
        ["select 1", " /* a */ SELECT 2", "INSERT x", "-- c\\n(select 3)", "BEGIN"].each { |sql| Trilogy.new.query(sql) }
      end
    RUBY
    expect(report["mysql"]["queries"]).to eq(5)
    expect(report["mysql"]["types"].transform_values { |type| type["queries"] })
      .to eq("select" => 3, "insert" => 1, "unknown" => 1)
  end

  it "counts HTTP by host, once even if it connects first, and answers by code" do
    report = trace(<<~RUBY)
      require "net/http"
      require "socket"
      server = TCPServer.new("127.0.0.1", 0)
      Thread.new do
        loop do
          socket = server.accept
          path = socket.gets[/ (\\S+)/, 1]
          nil until socket.gets == "\\r\\n"
          socket.write("HTTP/1.1 \#{path == "/x" ? "404 No" : "200 OK"}\\r\\nContent-Length: 2\\r\\nConnection: close\\r\\n\\r\\nhi")
          socket.close
        end
      end
      port = server.addr[1]
      Memprof.trace(tracers: :http) do
        Net::HTTP.get(URI("http://127.0.0.1:\#{port}/"))
        Net::HTTP.new("127.0.0.1", port).request(Net::HTTP::Get.new("/"))
        Net::HTTP.get_response("localhost", "/x", port)
        Thread.new { Net::HTTP.get(URI("http://127.0.0.1:\#{port}/")) }.join
      end
      Memprof.trace(tracers: :http, scope: :process) do
        Thread.new { Net::HTTP.get(URI("http://127.0.0.1:\#{port}/")) }.join
      end
    RUBY
    own, process = report
    expect(own["http"]).to include("calls" => 3, "responses" => { "200" => 2, "404" => 1 })
    expect(own["http"]["hosts"].transform_values { |host|
             host["calls"]
           }).to eq("127.0.0.1" => 2, "localhost" => 1)
    expect(own["http"]["hosts"].values.map { |host| host["ports"].values }).to eq([[2], [1]])
    expect(process["http"]["calls"]).to eq(1)
  end

  it "counts no HTTP that finds no server" do
    report = trace(<<~RUBY)
      require "net/http"
      require "socket"
      port = TCPServer.open("127.0.0.1", 0) { |server| server.addr[1] }
      get = Net::HTTP::Get.new("/")
      Memprof.trace(tracers: :http) do
        [-> { Net::HTTP.new("127.0.0.1", port).request(get) }, -> { Net::HTTP.get(URI("http://127.0.0.1:\#{port}")) }].each do |ask|
          ask.call
        rescue Errno::ECONNREFUSED
          nil
        end
      end
    RUBY
    expect(report).to eq("http" => {})
  end

  it "counts HTTP inside of the block that takes a response, each request with its own time" do
    report = trace(<<~RUBY)
      require "net/http"
      require "socket"
      server = TCPServer.new("127.0.0.1", 0)
      Thread.new do
        loop do
          Thread.new(server.accept) do |socket|
            while socket.gets
              nil until socket.gets == "\\r\\n"
              sleep 0.1
              socket.write("HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nhi")
            end
          end
        end
      end
      port = server.addr[1]
      ask = ->(&block) { Net::HTTP.new("127.0.0.1", port).request(Net::HTTP::Get.new("/"), &block) }
      began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      Memprof.trace(tracers: :http) do
        ask.call do
          ask.call { |response| response.read_body }
          Net::HTTP.start("127.0.0.1", port) do |http|
            http.request(Net::HTTP::Get.new("/")) { ask.call }
          end
        end
      end
      puts({ length: Process.clock_gettime(Process::CLOCK_MONOTONIC) - began }.to_json)
    RUBY
    http = report.first["http"]
    expect(http).to include("calls" => 4, "responses" => { "200" => 4 })
    expect(http["time"]).to be_between(0.4, report.last["length"])
    expect(http["hosts"]["127.0.0.1"]["time"]).to eq(http["time"])
  end

  it "shows a select without any IO as it was written" do
    report = trace(<<~RUBY)
      Memprof.trace(tracers: :fd) do
        select(nil, nil, nil, 0.15)
        IO.select(nil, nil, nil, 0.01)
        Kernel.select([$stdin], nil, nil, 0)
        begin; IO.select; rescue ArgumentError; end
      end
      begin; Object.new.select(nil); rescue NoMethodError; end
    RUBY
    expect(report["fd"]["select"]["calls"]).to eq(Memprof::Tracers.native.include?(:fd) ? 3 : 2)
    expect(report["fd"]["select"]["time"]).to be_between(0.16, 20)
  end

  it "has waits for the GVL beside the time" do
    report = trace(<<~RUBY)
      class Trilogy; def query(sql) = sleep(0.01); end
      2.times { Thread.new { loop { nil } } }
      began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      Memprof.trace(tracers: :mysql) { 2.times { Trilogy.new.query("select 1") } }
      puts({ length: Process.clock_gettime(Process::CLOCK_MONOTONIC) - began }.to_json)
    RUBY
    mysql = report.first["mysql"]
    if RUBY_VERSION >= "3.2"
      expect(mysql["gvl_wait"]).to be_positive
      expect(mysql["types"]["select"]["gvl_wait"]).to eq(mysql["gvl_wait"])
    else
      expect(mysql).not_to have_key("gvl_wait")
    end
    expect(mysql["time"] + mysql.fetch("gvl_wait", 0)).to be <= report.last["length"]
  end

  it "lets a signal handler call a client" do
    reports = trace(<<~RUBY)
      class Trilogy; def query(sql) = 1; end
      trap(:USR2) { Trilogy.new.query("select 1") }
      %i[thread process].each do |scope|
        Memprof.trace(tracers: :mysql, scope: scope) { Process.kill(:USR2, $$); sleep 0.05 }
      end
    RUBY
    expect(reports.map { |report| report["mysql"]["queries"] }).to eq([1, 1])
  end

  it "counts a call that raises, and none of its own objects" do
    report = trace(<<~RUBY)
      class Trilogy; def query(sql) = raise(IOError); end
      client = Trilogy.new
      ask = -> { begin; client.query("select"); rescue IOError; end }
      Memprof.trace(StringIO.new) { ask.call }
      Memprof.trace(tracers: %i[mysql objects]) { ask.call }
      Memprof.trace(tracers: %i[objects]) { ask.call }
    RUBY
    expect(report.first["mysql"]["queries"]).to eq(1)
    # The backtrace is the longer by our frame, its size may be the same.
    counts = report.values_at(0, -1).map do |one|
      one["objects"]["classes"].transform_values { |made| made["count"] }
    end
    expect(counts.first).to eq(counts.last)
  end
end
