# frozen_string_literal: true

require "memprof/web"
require "tmpdir"

RSpec.describe Memprof::Web::Records::Traces do
  def traces(*lines) = described_class.parse(text(lines))

  def text(lines) = lines.map { |line| "#{line.is_a?(String) ? line : line.to_json}\n" }.join

  def request(time, **more)
    { "start" => 1_795_309_858_984_631, "tracers" => more.fetch(:tracers, {}),
      "request" => { "REQUEST_METHOD" => "GET", "PATH_INFO" => more.fetch(:path, "/") }, "time" => time }
  end

  def lines_of(answer) = answer[:requests].map { |row| row[:line] }

  it "adds up what a request cost, by kind" do
    tracers = { "objects" => { "created" => 7, "bytes" => 280 }, "gc" => { "calls" => 2, "time" => 0.25 },
                "fd" => { "read" => { "calls" => 3, "time" => 0.5 },
                          "write" => { "calls" => 1, "time" => 0.25 } },
                "memory" => { "malloc" => { "calls" => 2, "requested" => 100 }, "free" => { "calls" => 1 } },
                "mysql" => { "queries" => 2, "time" => 0.125, "types" => { "select" => { "queries" => 2 } } },
                "resources" => { "utime" => 0.5, "stime" => 0.25 }, "redis" => {},
                "threads" => { "created" => 1, "gvl_wait_time" => 0.125, "gvl_waits" => 4 } }
    expect(traces(request(1.5, tracers: tracers)).at(1)[:costs]).to eq(time: 1.5, objects: 7,
      object_bytes: 280, gc: 0.25, gc_calls: 2, fd: 0.75, fd_calls: 4, memory: 100,
      memory_calls: 3, mysql: 0.125, mysql_calls: 2, cpu: 0.75, redis: 0,
      redis_calls: 0, gvl_wait: 0.125, gvl_waits: 4)
  end

  it "takes times of memprof 0.3 for milliseconds" do
    tracers = { "gc" => { "calls" => 1, "time" => 171 },
                "fd" => { "select" => { "calls" => 1, "time" => 150 } } }
    old = { "start" => 1_272_424_769_750, "tracers" => tracers, "time" => 1344 }
    entry = traces(old).at(1)
    expect(entry[:costs]).to include(time: 1.344, gc: 0.171, fd: 0.15, fd_calls: 1)
    expect(described_class.stamp(entry[:start])).to eq("2010-04-28 03:19:29.750 UTC")
    block = { "resources" => { "utime" => 4 }, "gc" => { "calls" => 1, "time" => 20 } }
    expect(traces(block).at(1)[:costs]).to include(cpu: 0.004, gc: 0.02)
  end

  it "reads reports of blocks, whose times are seconds" do
    expect(traces({ "gc" => { "calls" => 1, "time" => 0.5 } }).at(1))
      .to include(action: "block", costs: include(gc: 0.5, time: 0))
  end

  it "skips lines that are no requests, and counts them" do
    traces = traces(request(1.0), "{\"start\":1,", "", "[]", "{}", "7", "\xff", { "a" => 1 }, request(2.0))
    expect(lines_of(traces.worst("time"))).to eq([9, 1])
    expect([traces.size, traces.broken]).to eq([2, 6])
    expect([2, 3, 0, -1, 1 << 70, nil].map { |line| traces.at(line) }).to all(be_nil)
  end

  it "returns percentiles that occur" do
    times = (1..100).map { |number| request(number / 1000.0) }.shuffle(random: Random.new(1))
    cost = traces(*times).costs.find { |row| row[:kind] == "time" }
    expect(cost).to include(p50: 0.05, p90: 0.09, p95: 0.095, p99: 0.099, max: 0.1)
    expect(cost[:mean]).to be_within(1e-9).of(0.0505)
    expect(traces(request(0.5)).costs.first).to include(p50: 0.5, p99: 0.5)
  end

  it "groups requests, the most costly first" do
    traces = traces(request(1.0, path: "/a?x=1"), request(3.0, path: "/b"), request(0.5, path: "/a?x=2"))
    answer = traces.groups(nil, "path", "time", 25)
    expect(answer[:groups].map { |group| group.values_at(:name, :requests, :cost) })
      .to eq([["GET /b", 1, 3.0], ["GET /a", 2, 1.5]])
    expect(traces.groups(nil, "path", "time", 1)).to include(more: 1, groups: [include(name: "GET /b")])
    expect(lines_of(traces.worst("time"))).to eq([2, 1, 3])
    expect(lines_of(traces.worst("time", by: "path", only: "GET /a"))).to eq([1, 3])
  end

  it "calls a request by controller and action" do
    line = request(1.0).merge("rails" => { "controller" => "home", "action" => "index" })
    expect(traces(line).at(1)).to include(action: "home#index", path: "GET /", status: "none")
  end

  it "agrees with a naive reader" do
    random = Random.new(3)
    lines = Array.new(300) do |number|
      tracers = { "gc" => { "calls" => random.rand(4), "time" => random.rand },
                  "objects" => { "created" => random.rand(9) } }
      request(random.rand(20) / 8.0, tracers: tracers.slice(*tracers.keys.sample(2, random: random)),
        path: "/#{random.rand(7)}").merge("start" => 1_795_309_858_984_631 + number * 250_000)
    end
    naive = NaiveTraceLog.read(StringIO.new(text(lines)))
    traces = traces(*lines)
    %w[time gc_calls objects].each do |sort|
      expect(lines_of(traces.worst(sort))).to eq(naive.worst(sort).map(&:line))
      expect(traces.groups(nil, "path", sort, 4)[:groups].map { |group| group.values_at(:name, :requests) })
        .to eq(naive.groups(:path, sort).first(4).map { |group| group.values_at(:name, :requests) })
      ranks = naive.entries.map { |one| naive.entries.count { |all| all.cost(sort) > one.cost(sort) } + 1 }
      own = naive.entries.map { |entry| traces.at(entry.line)[:ranks].fetch(sort.to_sym, nil) }
      expect(own.zip(ranks).reject { |one, _| one.nil? }).to all(satisfy { |one, other| one == other })
    end
    expect(traces.count([10.0, 19.9])).to eq(40)
  end

  it "shows no record that is nested too deeply" do
    Dir.mktmpdir do |directory|
      path = File.join(directory, "requests.json")
      File.write(path, text([request(1.0).merge("deep" => JSON.parse("#{"[" * 95}#{"]" * 95}"))]))
      traces = File.open(path, "rb") { |io| described_class.read(io) }
      expect([traces.at(1)[:path], traces.record(1)]).to eq(["GET /", nil])
    end
  end

  it "reads a record from the file, and notices when that has changed" do
    Dir.mktmpdir do |directory|
      path = File.join(directory, "requests.json")
      File.write(path, text([request(1.0, path: "/\u00e4"), request(2.0)]))
      File.open(path, "rb") do |io|
        traces = described_class.read(io)
        expect(traces.record(1)["request"]["PATH_INFO"]).to eq("/\u00e4")
        expect(traces.record(2)["time"]).to eq(2.0)
        expect(traces.record(3)).to be_nil
        File.write(path, text([request(5.0, path: "/\u00e4")]))
        [1, 2].each do |line|
          expect { traces.record(line) }.to raise_error(Memprof::Error, /changed since it was read/)
        end
      end
    end
  end
end
