# frozen_string_literal: true

require "json"
require "stringio"
require "tmpdir"

RSpec.describe Memprof, ".trace" do
  let(:directory) { Dir.mktmpdir("memprof-spec-") }
  let(:path) { File.join(directory, "trace.json") }

  after { FileUtils.rm_rf(directory) }

  # The report of a block, from the file.
  def trace(**options, &block)
    File.write(path, "")
    described_class.trace(path, **options, &block)
    report
  end

  def report
    JSON.parse(File.read(path))
  end

  # Made once in Ruby, so that what a first call loads is not counted in the examples.
  before { described_class.trace(StringIO.new) { Object.new } }

  describe "what is written" do
    it "is one key for each tracer, in their order, on one line of a file" do
      expect(described_class.trace(path) { :value }).to eq(:value)

      expect(File.readlines(path).size).to eq(1)
      expect(report.keys).to eq(Memprof::Tracers.names.map(&:to_s))
      expect(report.values_at("redis", "http", "mysql")).to eq([{}, {}, {}])
    end

    it "is added to a file, which is its owner's alone" do
      3.times { described_class.trace(path, tracers: :gc) { nil } }

      expect(File.readlines(path).map { |line| JSON.parse(line).keys }).to eq([["gc"]] * 3)
      expect(File.stat(path).mode & 0o777).to eq(0o600)
    end

    it "is indented on standard output" do
      expect {
        described_class.trace(tracers: :gc) {
          nil
        }
      }.to output(/\A{\n  "gc": {\n    "calls": 0,\n/).to_stdout
    end

    it "goes to an IO as a line" do
      io = StringIO.new
      described_class.trace(io, tracers: :gc) { nil }
      expect(io.string).to match(/\A{"gc":{"calls":0,"time":0.0,.*}\n\z/)
    end

    it "is written although the block raises" do
      expect { described_class.trace(path) { raise KeyError, "no" } }.to raise_error(KeyError, "no")
      expect(report["objects"]["classes"]).to include("KeyError")
    end

    it "is written although the block is left by throw, break, return, or the thread's end" do
      catch(:out) { described_class.trace(path, tracers: :objects) { throw :out } }
      described_class.trace(path, tracers: :objects) { break }
      -> { described_class.trace(path, tracers: :objects) { return } }.call
      Thread.new { described_class.trace(path, tracers: :objects) { Thread.current.kill } }.join

      expect(File.readlines(path).size).to eq(4)
    end
  end

  describe "what is refused" do
    it "is a trace without a block" do
      expect { described_class.trace }.to raise_error(ArgumentError, "block required")
    end

    it "is an unknown tracer or scope" do
      expect { described_class.trace(tracers: %i[gc disc]) { raise } }
        .to raise_error(ArgumentError, /\Aunknown tracer :disc; expected one of: objects, gc, /)
      expect { described_class.trace(scope: :fiber) { raise } }
        .to raise_error(ArgumentError, "unknown scope :fiber; expected one of: thread, process")
    end

    it "is a file that can't be written, before the block runs" do
      expect { described_class.trace("/nowhere/x") { raise } }
        .to raise_error(Memprof::Error, "cannot write /nowhere/x: no such directory: /nowhere")
      expect { described_class.trace(directory) { raise } }.to raise_error(Memprof::Error, /is a directory/)
      expect { described_class.trace(7) { raise } }.to raise_error(ArgumentError, /a path or an IO, not/)
    end

    it "is a report that can't be written, unless something else went wrong", :aggregate_failures do
      expect { described_class.trace("/dev/full") { 1 } }
        .to raise_error(Memprof::Error, "cannot write /dev/full: No space left on device")
      expect { expect { described_class.trace("/dev/full") { raise "mine" } }.to raise_error("mine") }
        .to output(%r{\Amemprof: the trace is lost: cannot write /dev/full: No space left .*\n\z}).to_stderr
    end
  end

  describe "objects" do
    it "are those of the block, exactly" do
      objects = trace(tracers: :objects) { 10.times { Object.new } }["objects"]

      expect(objects).to include("created" => 10, "types" => { "object" => 10 })
      expect(objects["classes"]).to eq("Object" => { "count" => 10, "bytes" => objects["bytes"] })
      expect(objects["bytes"]).to be >= 400
    end

    it "are none of ours, however much is traced" do
      objects = trace { nil }["objects"]
      expect(objects).to include("created" => 0, "types" => {}, "classes" => {}, "bytes" => 0)
    end

    it "have the names of their classes, also of those without and of those that are gone" do
      classes = trace(tracers: :objects) do
        3.times { Class.new(String).new }
        GC.start
        2.times { Struct.new(:a).new(1) }
      end["objects"]["classes"]

      expect(classes).to include("#<Class < String>" => include("count" => 3),
        "#<Class < Struct>" => include("count" => 2))
    end

    it "are counted beside tracking, and what tracking makes for itself is not" do
      described_class.start
      objects = trace(tracers: :objects) do
        5.times { Object.new }
        described_class.stats(StringIO.new)
      end["objects"]
      expect(objects["classes"]["Object"]).to include("count" => 5)
      expect(described_class.running?).to be(true)
    end

    it "are counted after classes have moved", if: GC.respond_to?(:compact) do
      classes = trace(tracers: :objects) do
        200.times { Class.new.new }
        GC.compact
        7.times { Comparable.clone && Object.new }
      end["objects"]["classes"]
      expect(classes["Object"]["count"]).to eq(7)
    end
  end

  describe "collections" do
    it "are counted, with their time and reasons" do
      gc = trace(tracers: :gc) { 10.times { GC.start } }["gc"]

      expect(gc).to include("calls" => 10, "major" => 10, "minor" => 0, "reasons" => { "method" => 10 },
        "major_reasons" => { "force" => 10 })
      expect(gc["time"]).to be_within(1e-6 + (gc["time"] * 0.05)).of(gc["mark_time"] + gc["sweep_time"])
      expect(gc["mark_time"]).to be > 0
    end

    # Both are of the processor.
    it "agree with the VM's own count and time" do
      GC.start
      calls = time = nil
      gc = trace(tracers: :gc) do
        calls = GC.count
        time = GC.stat(:time)
        GC.start(full_mark: false) until GC.stat(:time) - time >= 100
        calls = GC.count - calls
        time = GC.stat(:time) - time
      end["gc"]

      expect(gc["calls"]).to eq(calls)
      expect(gc["minor"]).to be_positive
      own = time / 1000.0
      counted = gc["utime"] + gc["stime"]
      expect(counted).to be_within(own * 0.5).of(own)
    end

    it "belong to the thread that they hold up" do
      gc = trace(tracers: :gc) { Thread.new { GC.start }.join }["gc"]
      expect(gc["calls"]).to eq(0)
      expect(trace(tracers: :gc, scope: :process) { Thread.new { GC.start }.join }["gc"]["calls"]).to eq(1)
    end
  end

  it "counts created threads" do
    threads = trace(tracers: :threads) { 3.times { Thread.new { Thread.new { nil }.join }.join } }["threads"]
    expect(threads["created"]).to eq(3)
    expect(trace(tracers: :threads, scope: :process) {
             Thread.new {
               Thread.new {
                 nil
               }.join
             }.join
           }["threads"])
      .to include("created" => 2)
  end

  it "reports waits for the GVL where Ruby does", if: RUBY_VERSION >= "3.2" do
    busy = Thread.new { loop { 1 + 1 } }
    threads = trace(tracers: :threads) { 5.times { sleep 0.001 } }["threads"]
    expect(threads["gvl_waits"]).to be >= 5
    expect(threads["gvl_wait_time"]).to be_between(0.001, 10)
  ensure
    busy.kill
  end

  describe "nested, side by side and out of order" do
    let(:inner) { File.join(directory, "inner.json") }

    it "counts the inner block's objects twice" do
      outer = trace(tracers: :objects) do
        3.times { Object.new }
        described_class.trace(inner, tracers: :objects) { 4.times { Object.new } }
        2.times { Object.new }
      end
      expect(JSON.parse(File.read(inner))["objects"]["classes"]["Object"]["count"]).to eq(4)
      expect(outer["objects"]["classes"]["Object"]["count"]).to eq(9)
    end

    it "counts each thread's own" do
      gate = Queue.new
      threads = Array.new(8) do |index|
        Thread.new do
          gate.pop
          file = File.join(directory, "#{index}.json")
          described_class.trace(file, tracers: :objects) do
            50.times { (index + 1).times { Object.new } && Thread.pass }
          end
          JSON.parse(File.read(file))["objects"]["classes"]["Object"]["count"]
        end
      end
      8.times { gate << 1 }
      expect(threads.map(&:value)).to eq((1..8).map { |number| number * 50 })
    end

    it "counts the process's when asked to" do
      objects = trace(tracers: :objects, scope: :process) {
                  Thread.new {
                    5.times {
                      Object.new
                    }
                  }.join
                }["objects"]
      expect(objects["classes"]["Object"]["count"]).to eq(5)
    end

    it "ends in any order, as when a fiber leaves the block" do
      fiber = Fiber.new do
        described_class.trace(inner, tracers: :objects) do
          Object.new
          Fiber.yield
          Object.new
        end
      end
      outer = trace(tracers: :objects) do
        fiber.resume
        5.times { Object.new }
      end
      3.times { Object.new }
      fiber.resume

      expect(outer["objects"]["classes"]["Object"]["count"]).to eq(6)
      # While the block was left, the thread did this, too.
      expect(JSON.parse(File.read(inner))["objects"]["classes"]["Object"]["count"]).to be >= 10
    end
  end

  it "lets a fiber be thrown away in the middle" do
    result = run_ruby(<<~RUBY)
      require "memprof"
      def leave = Fiber.new { Memprof.trace { Fiber.yield } }.resume
      200.times { leave }
      GC.start
      Memprof.trace(tracers: :objects) { 3.times { Object.new } }
    RUBY
    expect(result.stderr).to eq("")
    expect(JSON.parse(result.stdout)["objects"]["created"]).to eq(3)
  end

  it "leaves the report to the parent when the block forks" do
    result = run_ruby(<<~RUBY)
      require "memprof"
      Memprof.trace(tracers: %i[objects gc http], scope: :process) do
        Process.wait(fork { GC.start; 100.times { Object.new } })
        if (pid = fork)
          Process.wait(pid)
        else
          100.times { Object.new }
        end
      end
      exit if $$ != Process.getpgrp
      Memprof.trace(tracers: :gc) { GC.start }
    RUBY
    expect(result.stderr).to eq("")
    reports = result.stdout.split(/^(?=\{)/).map { |text| JSON.parse(text) }
    expect(reports.first["gc"]["calls"]).to eq(0)
    expect(reports.first["objects"]["created"]).to be < 50
    expect(reports.last["gc"]["calls"]).to eq(1)
  end

  it "traces in the child of a fork" do
    result = run_ruby(<<~RUBY)
      require "memprof"
      Memprof.trace(tracers: %i[objects gc]) do
        Process.wait(fork { Memprof.trace { 10.times { Object.new } } })
      end
    RUBY
    expect(result.stderr).to eq("")
    child, = result.stdout.split(/^(?=\{)/).map { |text| JSON.parse(text) }
    expect(child["objects"]["types"]).to eq("object" => 10)
  end

  it "does not disturb Ractors, whose calls of clients are not counted" do
    result = run_ruby(<<~RUBY, ruby_args: ["-W:no-experimental"])
      require "memprof"
      Memprof.trace(File::NULL) do
        ractor = Ractor.new { IO.select(nil, nil, nil, 0.01) || :waited }
        p ractor.respond_to?(:value) ? ractor.value : ractor.take
      end
    RUBY
    # Before 3.1.4 Ruby crashes where a Ractor starts while objects are hooked (Bug #18464).
    expect(result.stderr).to RUBY_VERSION < "3.1.4" ? include("nor collections are traced") : eq("")
    expect(result.stdout).to eq(":waited\n")
  end

  it "leaves no hook installed" do
    before = Memprof::Tracers::Subscriber.running
    20.times { described_class.trace(StringIO.new) { nil } }
    expect(Memprof::Tracers::Subscriber.running).to eq(before)
  end

  describe "calls of libraries and of the system" do
    it "are counted, with their time and bytes" do
      fd = trace(tracers: :fd) {
        IO.pipe.then { |reader, writer|
          5.times {
            writer.syswrite("ab") && reader.sysread(9)
          }
        }
      }
      # Since Ruby 3.3 a thread may also wake the VM's timer, by eight bytes at once.
      woken = RUBY_VERSION < "3.3" ? 0 : fd["fd"]["write"]["calls"] - 5
      expect(fd["fd"]["write"]).to include("calls" => 5 + woken, "requested" => 10 + (8 * woken),
        "actual" => 10 + (8 * woken), "time" => be_positive)
      expect(fd["fd"]["read"]).to include("calls" => 5, "requested" => 45, "actual" => 10)
    end

    it "have those of malloc, and none of what a trace itself takes" do
      expect(trace(tracers: %i[memory objects]) { nil }["memory"]).to eq({})
      # The heap may grow meanwhile, which takes memory, too.
      rounds = Array.new(5) { trace(tracers: :memory) { 10.times { String.new(capacity: 5000) } }["memory"] }
      memory = rounds.min_by { |round| round["malloc"]["calls"] }
      expect(memory["malloc"]).to include("calls" => 10)
      expect(memory["malloc"]["requested"]).to be_between(50_000, 51_000)
    end

    it "have the processor's time" do
      cpu = trace(tracers: :resources) { 300_000.times { |number| number.to_s } }["resources"]
      expect(cpu["utime"]).to be_between(0.001, 20)
    end
  end

  # Names are kept from one trace to the next; a class may be where another was.
  it "names classes that come and go between traces" do
    names = Array.new(300) do |round|
      GC.start if (round % 40).zero?
      before = trace(tracers: :objects) { Class.new { 3.times { new } } }
      known = Class.new { define_singleton_method(:name) { "Made" } }
      Object.const_set(:"TraceSpecMade#{round}", known)
      made = trace(tracers: :objects) { 2.times { known.new } }["objects"]["classes"]
      Object.send(:remove_const, :"TraceSpecMade#{round}")
      [before["objects"]["classes"].keys.grep(/TraceSpecMade/), made.slice("TraceSpecMade#{round}")]
    end
    expect(names.map(&:first)).to all(eq([]))
    counts = names.map.with_index { |(_, made), round| made.dig("TraceSpecMade#{round}", "count") }
    expect(counts).to all(eq(2))
  end

  it "survives a collection at every allocation", :gc_stress do
    result = run_ruby(<<~RUBY, timeout: 300)
      require "memprof"
      require "stringio"
      Memprof.trace(StringIO.new) { "warm" }
      GC.stress = true
      trace = Memprof::Trace.new
      trace.start
      10.times { Class.new.new }
      Thread.new { Fiber.new { "abc".dup }.resume }.join
      report = trace.finish.to_h
      GC.stress = false
      p report["objects"]["created"] >= 30, report["gc"]["calls"] > 30, report["gc"]["reasons"].keys
    RUBY
    expect(result.stderr).to eq("")
    expect(result.stdout).to match(/\Atrue\ntrue\n\[.*"newobj"/)
  end
end
