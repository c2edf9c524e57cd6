# frozen_string_literal: true

require "fileutils"
require "memprof/heap"
require "tmpdir"

# Writing the index of a large dump takes a while: interrupting it leaves nothing behind.
RSpec.describe "memprof, interrupted while it reads a dump" do
  let(:directory) { Dir.mktmpdir("memprof-spec-") }
  let(:dump) { File.join(directory, "heap.json") }

  before do
    File.open(dump, "w") do |file|
      file.puts('{"type":"ROOT", "root":"vm", "references":["0x100000"]}')
      400_000.times do |number|
        at = 0x100000 + (40 * number)
        file.puts(format('{"address":"0x%x", "type":"STRING", "class":"0x8", "value":"text %d", ' \
                         '"references":["0x%x"], "memsize":40}', at, number, at + 40))
      end
    end
  end

  after { FileUtils.rm_rf(directory) }

  def unfinished
    Dir.children(directory).grep(/IN_PROGRESS/)
  end

  # Starts the command, and sends it a signal as soon as it is writing the index.
  def signalled(signal)
    command = [RbConfig.ruby, "-I#{ChildRuby::LIB}", File.join(ChildRuby::ROOT, "exe/memprof"), "leaks", dump]
    pid = Process.spawn(*command, out: File::NULL, err: File::NULL)
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 120
    until unfinished.any? || Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
      raise "it ended before it began to write" if Process.wait(pid, Process::WNOHANG)

      sleep(0.001)
    end
    Process.kill(signal, pid)
    Process.wait2(pid).last
  end

  # The same, again if the index was complete before the signal came.
  def interrupted(signal)
    20.times do
      status = signalled(signal)
      return status unless File.exist?("#{dump}.memprof-index")

      File.delete("#{dump}.memprof-index")
    end
    raise "the index was always complete before the signal came"
  end

  it "leaves no half index after Ctrl-C or TERM" do
    expect(interrupted(:INT).exitstatus).to eq(130)
    expect(unfinished).to eq([])
    expect(interrupted(:TERM).termsig).to eq(Signal.list["TERM"])
    expect(unfinished).to eq([])
  end

  it "removes what a killed one left when the dump is opened again" do
    expect(interrupted(:KILL).termsig).to eq(Signal.list["KILL"])
    expect(unfinished.size).to eq(1)
    Memprof::Heap.open(dump)
    expect(unfinished).to eq([])
    expect(File.exist?("#{dump}.memprof-index")).to be(true)
  end

  it "does not wait at a pipe in the place of the index" do
    File.mkfifo("#{dump}.memprof-index")
    expect(run_memprof("leaks", dump).status.exitstatus).to eq(0)
  end
end
