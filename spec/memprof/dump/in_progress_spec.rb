# frozen_string_literal: true

require "memprof/dump"
require "tmpdir"

RSpec.describe Memprof::Dump::InProgress do
  around { |example| Dir.mktmpdir { |directory| Dir.chdir(directory) { example.run } } }

  let(:path) { File.expand_path("heap.json") }

  def write(text = "whole")
    described_class.open(path) { |file| file.write(text) && :value }
  end

  it "renames a file when it is complete, readable for its owner only" do
    value = described_class.open(path) do |file|
      file.write("half")
      file.flush
      expect(Dir.children(".")).to eq(["heap.json.IN_PROGRESS"])
      expect(File.stat("heap.json.IN_PROGRESS").mode & 0o777).to eq(0o600)
      :value
    end
    expect(value).to eq(:value)
    expect(Dir.children(".")).to eq(["heap.json"])
    expect(File.stat(path).mode & 0o777).to eq(0o600)
  end

  it "sweeps what killed processes left, and nothing else" do
    gone = Process.wait(spawn("true"))
    stale = %w[17.json 17-1.memprof 17.json.gz].map { |name| "memprof-#{gone}-#{name}.IN_PROGRESS" }
    kept = ["memprof-#{Process.pid}-17.json.IN_PROGRESS", "memprof-#{gone}-17.json", "heap.json.IN_PROGRESS"]
    kept += ["other-#{gone}-1.json.IN_PROGRESS", "memprof-#{gone}-2.json.IN_PROGRESS"]
    (stale + kept).each { |name| File.write(name, "half") }
    File.symlink(File.expand_path(kept[1]), "memprof-#{gone}-3.json.IN_PROGRESS")
    Dir.mkdir("memprof-#{gone}-4.json.IN_PROGRESS")
    File.open(kept.last) do |locked|
      locked.flock(File::LOCK_EX)
      described_class.sweep(".")
      expect(Dir.children(".").sort)
        .to eq([*kept, "memprof-#{gone}-3.json.IN_PROGRESS", "memprof-#{gone}-4.json.IN_PROGRESS"].sort)
    end
    described_class.sweep(".")
    expect(File.exist?(kept.last)).to be(false)
    expect { described_class.sweep("nowhere") }.not_to raise_error
  end

  it "replaces what was there, and leaves it if the block fails" do
    File.write(path, "old")
    expect { described_class.open(path) { |file| file.write("half") && raise("no") } }.to raise_error("no")
    expect([Dir.children("."), File.read(path)]).to eq([["heap.json"], "old"])
    write
    expect(File.read(path)).to eq("whole")
  end

  it "leaves nothing behind if the block is left, or the thread ended" do
    catch(:out) { described_class.open(path) { throw :out } }
    thread = Thread.new { described_class.open(path) { sleep } }
    sleep(0.01) until thread.stop?
    thread.kill.join
    expect(Dir.children(".")).to be_empty
  end

  it "replaces what a killed process left" do
    reader, writer = IO.pipe
    pid = fork do
      described_class.open(path) do |file|
        file.write("half")
        file.flush
        writer.puts("written")
        sleep
      end
    end
    reader.gets
    Process.kill(:KILL, pid)
    Process.wait(pid)
    expect(File.size("heap.json.IN_PROGRESS")).to eq(4)
    write
    expect([Dir.children("."), File.read(path)]).to eq([["heap.json"], "whole"])
  end

  it "does not replace what is being written" do
    described_class.open(path) do |file|
      file.write("first")
      expect { write }.to raise_error(Memprof::Error,
        "cannot write #{path}.IN_PROGRESS: another dump is being written there")
    end
    expect(File.read(path)).to eq("first")
  end

  it "follows no link that another user planted, neither at the name nor at the temporary one" do
    File.write("victim", "mine")
    File.symlink("victim", "heap.json.IN_PROGRESS")
    expect { write }.to raise_error(Memprof::Error, /heap\.json\.IN_PROGRESS: a symbolic link is in the way/)
    File.unlink("heap.json.IN_PROGRESS")
    File.symlink("victim", "heap.json")
    write
    expect([File.read("victim"), File.symlink?(path), File.read(path)]).to eq(["mine", false, "whole"])
  end

  it "waits for no pipe that another user planted" do
    File.mkfifo("heap.json.IN_PROGRESS")
    expect { write }.to raise_error(Memprof::Error, /something other than a file is there/)
    expect(File.ftype("heap.json.IN_PROGRESS")).to eq("fifo")
  end

  it "is not put in the place of a pipe that came meanwhile" do
    expect { described_class.open(path) { File.mkfifo(path) } }
      .to raise_error(Memprof::Error, "cannot write #{path}: a device or a pipe is there now")
    expect([Dir.children("."), File.ftype(path)]).to eq([["heap.json"], "fifo"])
  end

  it "says why, if it can't be" do
    expect { described_class.open("/nowhere/at/all") { nil } }
      .to raise_error(Memprof::Error, "cannot write /nowhere/at/all: no such directory: /nowhere/at")
    expect {
      described_class.open("/proc/heap.json") {
        nil
      }
    }.to raise_error(Memprof::Error, %r{cannot write /proc/heap})
    expect { described_class.open(path) { raise Errno::ENOSPC } }
      .to raise_error(Memprof::Error, "cannot write #{path}: No space left on device")
    expect(Dir.children(".")).to be_empty
  end
end
