# frozen_string_literal: true

require "spec_helper"
require "memprof"

RSpec.describe Memprof::Memory::Cluster do
  before { skip "/proc is needed" unless File.readable?("/proc/self/smaps") }

  # What is shared and what is not is measured in processes of their own.
  def in_child(code)
    result = run_ruby(<<~RUBY)
      require "json"
      require "memprof"
      # Forks, and waits until the child has done what the block does.
      def worker
        reader, writer = IO.pipe
        pid = fork do
          yield
          writer.write("x")
          sleep
        end
        writer.close
        reader.read(1)
        pid
      end
      #{code}
    RUBY
    expect([result.stderr, result.status.exitstatus]).to eq(["", 0])
    JSON.parse(result.stdout, symbolize_names: true)
  end

  it "has a row for a process and for each that was forked from it" do
    found = in_child(<<~'RUBY')
      text = "x" * 16_000_000
      idle = worker { $0 = "the idle one" }
      busy = worker do
        text.setbyte(0, 121) # the page of the byte
        (0...8_000_000).step(4096) { |index| text.setbyte(index, 121) }
        $nested = worker { $0 = "forked by a worker" }
      end
      other = spawn("sleep", "100")
      nil until File.read("/proc/#{other}/cmdline").start_with?("sleep")
      cluster = Memprof.cluster_memory(Process.pid)
      worker = Memprof.cluster_memory(busy)
      puts({ cluster: cluster.to_h, worker: worker.to_h, pids: [Process.pid, idle, busy],
             text: cluster.to_s, inspect: cluster.inspect }.to_json)
      nested = cluster.processes.last[:pid]
      [idle, busy, other, nested].each { |pid| Process.kill(:KILL, pid) }
    RUBY
    cluster, worker, pids = found.values_at(:cluster, :worker, :pids)
    own, idle, busy, nested = cluster[:processes]
    expect([own, idle, busy].map { |process| process[:pid] }).to eq(pids)
    expect([idle, busy, nested].map { |process| process[:parent] }).to eq([pids[0], pids[0], pids[2]])
    expect([idle, nested].map { |process| process[:name] }).to eq(["the idle one", "forked by a worker"])
    # What it has written to is still shared with the process that it has forked.
    expect(idle[:shared]).to be > 15_000_000
    expect(busy[:private] + nested[:private]).to be < 12_000_000
    expect(worker[:processes].map { |process| process[:pid] }).to eq([busy[:pid], nested[:pid]])
    expect(worker[:forked_from]).to eq(pids[0])
    expect(worker[:pss]).to be > idle[:pss] + 6_000_000
    expect(cluster[:pss]).to eq(cluster[:processes].sum { |process| process[:pss] })
    expect(cluster[:pss]).to be < cluster[:rss] / 2
    cluster[:processes].each do |process|
      expect(process[:private] + process[:shared]).to eq(process[:rss])
      expect(process[:pss]).to be_between(process[:private], process[:rss])
    end
    expect(own[:ruby]).to be_between(16_000_000, own[:rss])
    expect(idle[:ruby]).to be_nil
    expect(cluster.dig(:others, :processes)).to eq(1)
    expect(found[:text]).to start_with("4 processes, ")
      .and match(/^ +RSS +PSS +Private +Shared +Ruby +PID  Process$/)
      .and match(/ #{idle[:pid]}  the idle one$/)
      .and include("1 other program that they have started takes")
    expect(found[:inspect])
      .to eq("#<Memprof::Memory::Cluster of #{pids[0]}: 4 processes, #{cluster[:pss]} bytes>")
  end

  it "finds the master of the process that asks, and counts only what still runs" do
    master, asked, pids = in_child(<<~RUBY)
      ended = fork { exit! }
      sleep(0.001) until File.read("/proc/\#{ended}/stat").include?(") Z ") # is not waited for
      reader, writer = IO.pipe
      fork { writer.write(Memprof.cluster_memory.to_json); writer.close; exit! }
      writer.close
      cluster = JSON.parse(reader.read)
      puts [Process.pid, cluster["pid"], cluster["processes"].map { |process| process["pid"] } - [Process.pid, ended]].to_json
    RUBY
    expect(asked).to eq(master)
    expect(pids.size).to eq(1)
  end

  it "copes with workers that end while they are measured" do
    measured = in_child(<<~RUBY)
      stop = false
      storm = Thread.new do
        until stop
          pids = Array.new(3) { fork { exit! } }
          pids.each { |pid| Process.wait(pid) }
        end
      end
      found = Array.new(40) { Memprof::Memory::Cluster.of(Process.pid) }
      stop = true
      storm.join
      whole = found.all? { |cluster| cluster.processes.all? { |process| process[:rss].positive? } }
      puts [found.map { |cluster| cluster.processes.first[:pid] }.uniq == [Process.pid], whole].to_json
    RUBY
    expect(measured).to eq([true, true])
  end

  it "names a process that has ended" do
    pid = Process.spawn("true")
    Process.wait(pid)
    expect { Memprof.cluster_memory(pid) }
      .to raise_error(Memprof::Error, /the memory of process #{pid} and its workers: No such process/)
  end
end
