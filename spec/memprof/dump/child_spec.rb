# frozen_string_literal: true

require "memprof/dump"
require "tempfile"

# The child itself is made up here: what a real one writes is for the whole processes in spec/integration to
# show.
RSpec.describe Memprof::Dump::Child do
  let(:file) { Tempfile.new("memprof") }
  let(:pids) { [] }

  after { file.close! }

  # As Native.fork_dump, with a child that does what the block says.
  def child
    native = Memprof.const_get(:Native)
    allow(native).to receive(:fork_dump) do |_, _, made|
      reader, writer = IO.pipe
      pid = fork do
        reader.close
        yield(writer)
        writer.close
        exit!(0)
      end
      writer.close
      reader.autoclose = false
      made.push(pid, reader.fileno)
      pids << pid
      nil
    end
  end

  def write
    described_class.write(file, -> { {} })
  end

  # Raises if there is such a child still, as a zombie or running.
  def expect_reaped
    expect(pids).not_to be_empty
    pids.each { |pid| expect { Process.wait(pid) }.to raise_error(Errno::ECHILD) }
  end

  it "gives what the child reports, and leaves no zombie" do
    child { |writer| writer.puts('{"objects":12,"bytes":345}') }
    expect(write).to eq("objects" => 12, "bytes" => 345)
    expect_reaped
  end

  it "reports what went wrong in the child" do
    child { |writer| writer.puts('{"error":"No space left on device"}') }
    expect { write }.to raise_error(Memprof::Error, "No space left on device")
    expect_reaped
  end

  it "reports the signal or status of the child" do
    child { Process.kill(:KILL, Process.pid) }
    expect { write }.to raise_error(Memprof::Error, "the child that wrote it was ended by signal 9 (KILL)")
    child { exit!(3) }
    expect { write }.to raise_error(Memprof::Error, "the child that wrote it ended with status 3")
    child { |writer| writer.write('{"objects":') }
    expect { write }.to raise_error(Memprof::Error, "the child that wrote it ended with status 0")
    expect_reaped
  end

  it "does not mind who else waits for children" do
    child { |writer| writer.puts('{"objects":1}') && writer.flush }
    before = described_class.instance_method(:reap)
    allow_any_instance_of(described_class).to receive(:reap) do |instance|
      Process.wait(pids.last)
      before.bind_call(instance)
    rescue Errno::ECHILD
      before.bind_call(instance)
    end
    expect(write).to eq("objects" => 1)
  end

  it "ends a child that does not continue" do
    stub_const("#{described_class}::STALLED", 0.5)
    child { sleep }
    beginning = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    expect { write }.to raise_error(Memprof::Error, /made no progress for 0.5 s and was killed/)
    expect(Process.clock_gettime(Process::CLOCK_MONOTONIC) - beginning).to be < 30 # of 60
    expect_reaped
  end

  it "waits for one that is slow, as long as it writes" do
    stub_const("#{described_class}::STALLED", 3)
    child do |writer|
      5.times do
        sleep(0.8)
        file.write("x")
        file.flush
      end
      writer.puts('{"objects":1}')
    end
    expect(write).to eq("objects" => 1)
  end

  it "ends the child if the thread that waits is ended" do
    child { sleep }
    thread = Thread.new { write }
    thread.report_on_exception = false
    sleep(0.01) until !pids.empty? && thread.stop?
    thread.kill.join(60)
    expect_reaped
  end

  it "lets other threads run meanwhile" do
    reader, ticks = IO.pipe
    child { |writer| reader.read(20) && writer.puts('{"objects":1}') }
    ticker = Thread.new { loop { sleep(0.005) && ticks.write(".") } }
    expect(write).to eq("objects" => 1) # it ends no sooner than the other thread has had twenty turns
  ensure
    ticker&.kill
  end

  it "waits for the end of a collection, but not for long" do
    allow(GC).to receive(:latest_gc_info).with(:state).and_return(:marking, :sweeping, :none)
    described_class.between_collections
    expect(GC).to have_received(:latest_gc_info).exactly(3).times
    allow(GC).to receive(:latest_gc_info).with(:state).and_return(:sweeping)
    beginning = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    described_class.between_collections
    expect(Process.clock_gettime(Process::CLOCK_MONOTONIC) - beginning).to be_between(0.2, 30)
  end
end
