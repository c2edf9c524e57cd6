# frozen_string_literal: true

require "memprof"
require "memprof/agent/dump_room"
require "memprof/agent/limits"
require "tempfile"

RSpec.describe "The room for a dump of the agent" do
  let(:limits) { Struct.new(:resident, :free).new(800 << 20, nil) }
  let(:cgroup) { Struct.new(:state) { def processes(_) = @processes.to_a }.new }
  let(:meminfo) { Tempfile.create("meminfo") }
  let(:room) { Memprof::Agent::DumpRoom.new(limits, cgroup: cgroup, meminfo: meminfo.path) }

  before { File.write(meminfo.path, "MemTotal: 9 kB\nMemAvailable:   #{1 << 20} kB\n") }
  after { meminfo.close && File.unlink(meminfo.path) }

  def refusal = room.refusal("/tmp")

  it "is there on an idle machine" do
    expect([refusal, room.memory?]).to eq([nil, true])
  end

  it "is lacking if the cgroup or the machine is almost full" do
    limits.free = 100 << 20
    expect(refusal).to eq("100.0 MiB of memory are free, and 132.0 MiB are needed")
    expect(room).not_to be_memory
    limits.free = 200 << 20
    File.write(meminfo.path, "MemAvailable: 1024 kB\n")
    expect(refusal).to eq("1.0 MiB of memory are free, and 132.0 MiB are needed")
  end

  it "is lacking if it is unknown" do
    File.write(meminfo.path, "")
    expect(refusal).to eq("free memory is unknown")
    expect(room.refusal("/nowhere")).to eq("free disk is unknown")
  end

  it "is lacking on a full disk" do
    with_file_system("size=1m") do |directory|
      expect(room.refusal(directory)).to match(/\A1\.0 MiB of disk are free, and .* MiB are needed\z/)
    end
  end

  it "is left to a larger process of the same program in the same cgroup" do
    cgroup.state = Struct.new(:directory).new("/cgroup")
    child = fork { sleep }
    cgroup.instance_variable_set(:@processes, [Process.pid, 1, 2**22 - 1, child])
    expect(refusal).to be_nil
    limits.resident = 4096
    expect(refusal).to eq("process #{child} of this program is larger")
  ensure
    Process.kill(:KILL, child)
    Process.wait(child)
  end
end
