# frozen_string_literal: true

require "memprof"
require "memprof/agent/limits"
require "tempfile"

RSpec.describe "The limits of the agent" do
  let(:clock) { Struct.new(:now).new(0.0) }
  let(:cgroup) { Struct.new(:state, :pressure).new }
  let(:statm) { Tempfile.create("statm") }

  after { statm.close && File.unlink(statm.path) }

  def resident=(bytes)
    File.write(statm.path, "999999 #{bytes / Etc.sysconf(Etc::SC_PAGESIZE)} 0 0 0 0 0\n")
  end

  def used(used, limit) = double(used: used, limit: limit, share: Rational(used, limit), free: limit - used)

  def limits(**settings)
    given = { limit: nil, pressure: nil, cooldown: 100 }.merge(settings)
    Memprof::Agent::Limits.new(given, cgroup: cgroup, clock: clock, statm: statm.path)
  end

  it "are reached by RSS, once in a cool-down" do
    watched = limits(limit: 100 << 20)
    self.resident = 99 << 20
    expect(watched.reached).to be_nil
    self.resident = 101 << 20
    expect(watched.reached).to eq("RSS is 101.0 MiB, of 100.0 MiB")
    clock.now = 99.9
    expect(watched.reached).to be_nil
    clock.now = 100.0
    expect(watched.reached).to start_with("RSS is")
  end

  it "are reached by a share of the cgroup" do
    watched = limits(limit: 9/10r)
    cgroup.state = used(899, 1000)
    expect(watched.reached).to be_nil
    cgroup.state = used(900, 1000)
    expect(watched.reached).to eq("the cgroup uses 900 B of 1000 B (90 %)")
    expect(watched.free).to eq(100)
  end

  it "are reached by pressure" do
    watched = limits(pressure: 20)
    cgroup.pressure = 19.9
    expect(watched.reached).to be_nil
    cgroup.pressure = 20.5
    expect(watched.reached).to eq("memory pressure is 20.5 % (some avg10)")
  end

  it "are not watched unless wanted" do
    cgroup.state = used(999, 1000)
    cgroup.pressure = 99.0
    expect([limits.watched?, limits.reached, limits.problem]).to eq([false, nil, nil])
  end

  it "say what can't be watched here" do
    expect(limits(limit: 9/10r).problem).to eq("limit is not watched: no cgroup of this process has a memory limit")
    expect(limits(pressure: 20).problem).to eq("pressure is not watched: this system has no PSI")
    File.truncate(statm.path, 0)
    expect(limits(limit: 100).problem).to eq("limit is not watched: RSS is unknown on this system")
    expect([limits(limit: 9/10r), limits(pressure: 20), limits(limit: 100)].map(&:reached)).to all(be_nil)
  end

  it "know this process's RSS" do
    watched = Memprof::Agent::Limits.new({ limit: nil, pressure: nil, cooldown: 0 })
    expect(watched.resident).to be_within(30 << 20).of(Memprof.memory.rss)
  end
end
