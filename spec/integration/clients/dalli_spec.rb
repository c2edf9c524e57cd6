# frozen_string_literal: true

RSpec.describe "Calls of dalli to memcached" do
  include MemcacheReports

  before(:all) { need(server: :memcached, client: "dalli") }

  # Runs code in a trace; besides the report gives what the server counted meanwhile, without what it takes to
  # ask it.
  def asked(code, before: "nil")
    client_program(<<~RUBY, server: :memcached)
      require "dalli"
      Dalli.logger.level = Logger::WARN
      client = Dalli::Client.new(ENV["MEMCACHED_SERVER"])
      client.flush
      #{before}
      status = -> { client.stats.values.first.transform_values(&:to_i) }
      status.call
      idle, first = status.call, status.call
      tracers = traced(tracers: %i[memcache fd]) { #{code} }
      last = status.call
      emit(**tracers, server: last.to_h { |name, value| [name, value - first[name] - (first[name] - idle[name])] })
    RUBY
  end

  it "are those that the server got, of the same bytes" do
    result = asked(<<~RUBY)
      client.set("a", "value")
      client.get("a")
      2.times { client.get("nothing") }
      client.add("a", 1)
      client.add("b", 1)
      client.replace("nothing", 1)
      2.times { client.delete("b") }
    RUBY
    server = result["server"]
    expect(calls(result)).to eq("set" => 1, "get" => 3, "add" => 2, "replace" => 1, "delete" => 2)
    expect(server).to include("cmd_get" => 3, "cmd_set" => 4, "delete_hits" => 1, "delete_misses" => 1)
    expect(answers(result, "get")).to eq("success" => server["get_hits"], "notfound" => server["get_misses"])
    expect(answers(result, "delete")).to eq("success" => 1, "notfound" => 1)
    expect(answers(result, "add")).to eq("success" => 1, "notstored" => 1)
    expect(answers(result, "replace")).to eq("notstored" => 1)
    expect(result["fd"]["write"]["actual"]).to eq(server["bytes_read"])
  end

  it "count and compare" do
    result = asked(<<~RUBY, before: %q(client.set("count", "0", nil, raw: true); client.set("a", 1)))
      3.times { client.incr("count") }
      client.decr("count")
      client.incr("nothing")
      client.cas("a") { |value| value + 1 }
      client.cas("nothing") { raise "this has no value" }
      client.touch("a", 60)
      client.touch("nothing", 60)
    RUBY
    server = result["server"]
    # What else it counts depends on the protocol, which is another one since dalli 4.
    expect(server).to include("incr_hits" => 3, "incr_misses" => 1, "decr_hits" => 1, "cas_hits" => 1,
      "cmd_set" => 1)
    expect(calls(result)).to eq("increment" => 4, "decrement" => 1, "cas" => 2, "set" => 1, "touch" => 2)
    expect(answers(result, "increment")).to eq("success" => 3, "notfound" => 1)
    expect(answers(result, "cas")).to eq("success" => 1, "notfound" => 1)
    expect(answers(result, "touch")).to eq("success" => 1, "notfound" => 1)
  end

  it "report which of many keys were there, also when they are yielded one by one" do
    result = asked(<<~RUBY, before: %q(%w[a b c].each { |key| client.set(key, key) }))
      raise "wrong" unless client.get_multi("a", "b", "nothing") == { "a" => "a", "b" => "b" }

      pairs = {}
      client.get_multi(%w[a c], "nothing", "nobody") { |key, value| pairs[key] = value }
      raise "wrong" unless pairs == { "a" => "a", "c" => "c" }

      other = Dalli::Client.new(ENV["MEMCACHED_SERVER"]) # is of no use any more after that
      key = other.get_multi("b", "c") { |found, _| break found }
      raise "wrong: \#{key}" unless %w[b c].include?(key)
    RUBY
    server = result["server"]
    expect(calls(result)).to eq("mget" => 3)
    expect(server).to include("cmd_get" => 9, "get_hits" => 6)
    # A caller that does not want the rest gets nothing of it.
    expect(answers(result, "mget")).to eq("success" => 4, "notfound" => 3, "error" => 1)
  end

  it "have no known answer where dalli does not wait for one" do
    result = asked(<<~RUBY)
      client.multi do
        client.set("a", 1)
        client.set("b", 1)
        client.delete("a")
      end
      client.get("b")
    RUBY
    expect(result["server"]).to include("cmd_set" => 2, "delete_hits" => 1, "get_hits" => 1)
    expect(answers(result, "set")).to eq("unknown" => 2)
    expect(answers(result, "delete")).to eq("unknown" => 1)
    expect(answers(result, "get")).to eq("success" => 1)
  end

  it "are errors when no server answers" do
    result = asked(<<~RUBY)
      Dalli.logger.level = Logger::UNKNOWN
      lost = Dalli::Client.new("127.0.0.1:1")
      begin
        lost.get("a")
        raise "somebody answers"
      rescue Dalli::RingError
        nil
      end
    RUBY
    expect(answers(result, "get")).to eq("error" => 1)
  end

  it_behaves_like "a client whose calls are traced", server: :memcached, library: "dalli",
    open: %q(Dalli.logger.level = Logger::WARN; Dalli::Client.new(ENV["MEMCACHED_SERVER"])),
    ask: %q(client.set("a", 1)), count: %i[memcache set calls]
end
