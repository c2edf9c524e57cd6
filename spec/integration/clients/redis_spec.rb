# frozen_string_literal: true

RSpec.describe "Commands of the redis gem to Redis" do
  before(:all) { need(server: :redis, client: "redis") }

  # Runs code in a trace; besides the report gives what the server counted meanwhile.
  def asked(code)
    client_program(<<~RUBY, server: :redis)
      require "redis"
      client = Redis.new(port: ENV["REDIS_PORT"])
      client.flushall
      client.info # its own size in bytes is that of the last one
      client.config(:resetstat)
      tracers = traced(tracers: %i[redis fd]) { #{code} }
      info = client.info("all")
      commands = info.filter_map { |key, value| [key[/\\Acmdstat_(\\w+)/, 1], value[/calls=(\\d+)/, 1].to_i] if key.start_with?("cmdstat") }
      commands = commands.group_by(&:first).transform_values { |calls| calls.sum(&:last) }
      emit(**tracers, server: commands, bytes: Integer(info["total_net_input_bytes"]))
    RUBY
  end

  def calls(report)
    report["commands"].transform_values { |command| command["calls"] }
  end

  # `*3\r\n$4\r\ninfo...`, with which the server was asked for what it counted.
  let(:question) { "*2\r\n$4\r\ninfo\r\n$3\r\nall\r\n".bytesize }

  def expect_agreement(result)
    # What the server says of the command that resets its statistics differs from version to version.
    server = result["server"].reject { |name, _| %w[config info].include?(name) }
    expect(calls(result["redis"])).to eq(server)
    expect(result["redis"]["calls"]).to eq(server.values.sum)
  end

  it "are those that the server got, of the same bytes" do
    result = asked(<<~RUBY)
      client.set("a", "1")
      3.times { client.get("a") }
      client.mget("a", "nothing")
      client.call("object", "encoding", "a")
      client.eval("return 1")
      client.del("a")
    RUBY
    expect_agreement(result)
    expect(calls(result["redis"])).to include("get" => 3, "object" => 1)
    expect(result["fd"]["send"]["actual"]).to eq(result["bytes"] - question)
  end

  it "share the time of pipelines and transactions" do
    result = asked(<<~RUBY)
      client.pipelined do |pipeline|
        10.times { |number| pipeline.set("key\#{number}", number) }
        pipeline.incr("key1")
      end
      client.multi { |transaction| 2.times { transaction.incr("key2") } }
      client.watch("key3") { client.unwatch }
    RUBY
    expect_agreement(result)
    expect(calls(result["redis"])).to include("set" => 10, "incr" => 3, "multi" => 1, "exec" => 1,
      "unwatch" => 1)
    times = result["redis"]["commands"].sum { |_, command| command["time"] }
    expect(result["redis"]["time"]).to be_within(1e-6).of(times)
  end

  it "are counted when they fail, and when they wait" do
    result = asked(<<~RUBY)
      client.set("text", "a")
      begin
        client.incr("text")
        raise "this should fail"
      rescue Redis::CommandError
        client.get("text")
      end
      client.blpop("nothing", timeout: 0.1)
    RUBY
    expect_agreement(result)
    expect(result["redis"]["commands"]["blpop"]["time"]).to be_between(0.05, 20)
  end

  it_behaves_like "a client whose calls are traced", server: :redis, library: "redis",
    open: %q(Redis.new(port: ENV["REDIS_PORT"])), ask: %q(client.ping), count: %i[redis calls]

  # The reply to PING is often there before the client looks for it, and then nobody waits.
  it_behaves_like "a client that waits for the GVL", server: :redis, library: "redis",
    open: %q(Redis.new(port: ENV["REDIS_PORT"])), ask: %q(client.blpop("nothing", timeout: 0.02)),
    tracer: :redis
end
