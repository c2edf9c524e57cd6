# frozen_string_literal: true

require "fileutils"
require "memprof"
require "memprof/agent/cgroup"
require "tmpdir"

RSpec.describe "The cgroup of the agent" do
  around { |example| Dir.mktmpdir { |root| (@root = root) && example.run } }

  def write(path, text)
    path = File.join(@root, path)
    FileUtils.mkdir_p(File.dirname(path))
    File.write(path, text)
    path
  end

  def cgroup(memberships)
    Memprof::Agent::Cgroup.new(memberships: write("memberships", memberships), root: File.join(@root, "cgroup"),
      system_pressure: File.join(@root, "pressure"))
  end

  it "is the one that is closest to its limit" do
    write("cgroup/app/web/memory.max", "max\n")
    write("cgroup/app/web/memory.current", "700\n")
    write("cgroup/app/memory.max", "1000\n")
    write("cgroup/app/memory.current", "900\n")
    write("cgroup/app/memory.stat", "anon 5\ninactive_file 100\n")
    write("cgroup/memory.max", "500\n")
    write("cgroup/memory.current", "100\n")
    state = cgroup("0::/app/web\n").state
    expect(state.to_a).to eq([800, 1000, File.join(@root, "cgroup/app")])
    expect([state.share, state.free]).to eq([4/5r, 200])
  end

  it "may be of version 1, whose path exists on the host only" do
    write("cgroup/memory/memory.limit_in_bytes", "1000")
    write("cgroup/memory/memory.usage_in_bytes", "900")
    write("cgroup/memory/memory.stat", "inactive_file 10\ntotal_inactive_file 20\n")
    expect(cgroup("4:cpu,memory:/docker/4711\n2:pids:/\n0::/\n").state.used).to eq(880)
    write("cgroup/memory/memory.limit_in_bytes", "9223372036854771712")
    expect(cgroup("4:memory:/\n").state).to be_nil
  end

  it "is unknown without a limit, outside of its namespace, and where files are missing or damaged" do
    expect([cgroup("0::/\n"), cgroup("0::/../x\n"), cgroup("nonsense\n\n")].map(&:state)).to all(be_nil)
    write("cgroup/memory.max", "0\n")
    write("cgroup/memory.current", "5\n")
    expect(cgroup("0::/\n").state).to be_nil
    write("cgroup/memory.max", "10\n")
    write("cgroup/memory.current", "five\n")
    expect(cgroup("0::/\n").state).to be_nil
    expect(Memprof::Agent::Cgroup.new(memberships: "/nowhere", root: @root).state).to be_nil
  end

  it "has its own pressure, or that of the system" do
    expect(cgroup("0::/app\n").pressure).to be_nil
    write("pressure", "some avg10=1.50 avg60=0.00\nfull avg10=9.00\n")
    expect(cgroup("0::/app\n").pressure).to eq(1.5)
    write("cgroup/app/memory.pressure", "some avg10=22.00 avg60=0.00 avg300=0.00 total=5\n")
    expect(cgroup("0::/app\n").pressure).to eq(22.0)
  end

  it "knows its processes" do
    write("cgroup/app/cgroup.procs", "12\n0\n13\n")
    expect(cgroup("0::/app\n").processes(File.join(@root, "cgroup/app"))).to eq([12, 13])
  end
end
