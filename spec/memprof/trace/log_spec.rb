# frozen_string_literal: true

require "memprof/trace/log"
require "stringio"

RSpec.describe Memprof::Trace::Log do
  def log(*lines)
    described_class.read(StringIO.new(lines.map { |line|
                                        "#{line.is_a?(String) ? line : line.to_json}\n"
                                      }.join))
  end

  def request(time, **more)
    { "start" => 1_795_309_858_984_631, "tracers" => more.fetch(:tracers, {}),
      "request" => { "REQUEST_METHOD" => "GET", "PATH_INFO" => more.fetch(:path, "/") }, "time" => time }
  end

  it "adds up what a request cost, by kind" do
    tracers = { "objects" => { "created" => 7, "bytes" => 280 }, "gc" => { "calls" => 2, "time" => 0.25 },
                "fd" => { "read" => { "calls" => 3, "time" => 0.5 },
                          "write" => { "calls" => 1, "time" => 0.25 } },
                "memory" => { "malloc" => { "calls" => 2, "requested" => 100 }, "free" => { "calls" => 1 } },
                "mysql" => { "queries" => 2, "time" => 0.125, "types" => { "select" => { "queries" => 2 } } },
                "resources" => { "utime" => 0.5, "stime" => 0.25 }, "redis" => {},
                "threads" => { "created" => 1, "gvl_wait_time" => 0.125, "gvl_waits" => 4 } }
    expect(log(request(1.5, tracers: tracers)).entries.first.costs).to eq("time" => 1.5, "objects" => 7,
      "object_bytes" => 280, "gc" => 0.25, "gc_calls" => 2, "fd" => 0.75, "fd_calls" => 4, "memory" => 100,
      "memory_calls" => 3, "mysql" => 0.125, "mysql_calls" => 2, "cpu" => 0.75, "redis" => 0,
      "redis_calls" => 0, "gvl_wait" => 0.125, "gvl_waits" => 4)
  end

  it "takes times of memprof 0.3 for milliseconds" do
    tracers = { "gc" => { "calls" => 1, "time" => 171 },
                "fd" => { "select" => { "calls" => 1, "time" => 150 } } }
    old = { "start" => 1_272_424_769_750, "tracers" => tracers, "time" => 1344 }
    entry = log(old).entries.first
    expect(entry.costs).to include("time" => 1.344, "gc" => 0.171, "fd" => 0.15, "fd_calls" => 1)
    expect(entry.start.to_r).to eq(1_272_424_769_750r / 1000)
    block = { "resources" => { "utime" => 4 }, "gc" => { "calls" => 1, "time" => 20 } }
    expect(log(block).entries.first.costs).to include("cpu" => 0.004, "gc" => 0.02)
  end

  it "reads reports of blocks, whose times are seconds" do
    expect(log({ "gc" => { "calls" => 1, "time" => 0.5 } }).entries.first)
      .to have_attributes(action: "block", costs: include("gc" => 0.5, "time" => 0))
  end

  it "passes over what is no request, and says how much and where" do
    log = log(request(1.0), "{\"start\":1,", "", "[]", "{}", "7", "\xff", { "a" => 1 }, request(2.0))
    expect(log.entries.map(&:line)).to eq([1, 9])
    expect([log.broken, log.first_broken]).to eq([6, 2])
  end

  it "returns percentiles that occur" do
    times = (1..100).map { |number| request(number / 1000.0) }.shuffle(random: Random.new(1))
    cost = log(*times).costs.find { |row| row[:kind] == "time" }
    expect(cost).to include(p50: 0.05, p90: 0.09, p95: 0.095, p99: 0.099, max: 0.1)
    expect(cost[:mean]).to be_within(1e-9).of(0.0505)
    expect(log(request(0.5)).costs.first).to include(p50: 0.5, p99: 0.5)
  end

  it "groups requests, the most costly first" do
    log = log(request(1.0, path: "/a?x=1"), request(3.0, path: "/b"), request(0.5, path: "/a?x=2"))
    expect(log.groups(:path, "time").map { |group| group.values_at(:name, :requests, :cost) })
      .to eq([["GET /b", 1, 3.0], ["GET /a", 2, 1.5]])
    expect(log.worst("time").map(&:line)).to eq([2, 1, 3])
  end

  it "calls a request by controller and action" do
    entry = log(request(1.0).merge("rails" => { "controller" => "home", "action" => "index" })).entries.first
    expect([entry.action, entry.path, entry.status]).to eq(["home#index", "GET /", "none"])
  end
end
