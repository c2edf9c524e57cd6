# frozen_string_literal: true

require "logger"
require "memprof/agent"
require "stringio"
require "timeout"

# It does not start by itself here, as this is a test; the examples start it.
RSpec.describe Memprof::Agent do
  let(:output) { StringIO.new }
  let(:logger) { Logger.new(output) }

  after { described_class.stop }

  def start(**settings) = described_class.start(interval: 0.1, budget: 1, logger: logger, **settings)
  def wait_for(&condition) = Timeout.timeout(60) { sleep(0.01) until condition.call }

  it "starts once, and stops" do
    expect([described_class.running?, described_class.stop]).to eq([false, false])
    expect(described_class.settings).to eq({})
    expect([start, start, described_class.running?]).to eq([true, false, true])
    expect(described_class.settings).to include(interval: 0.1, limit: nil).and be_frozen
    thread = Thread.list.find { |one| one.name == "memprof agent" }
    expect(thread).to have_attributes(priority: -1, report_on_exception: false)
    expect([described_class.stop, described_class.stop, thread.alive?]).to eq([true, false, false])
    expect([described_class.intervals, described_class.leaks]).to eq([[], []])
  end

  it "has the last intervals, oldest first, and calls subscribers with each" do
    seen = Queue.new
    subscription = described_class.subscribe { |interval| seen << [interval, Thread.current.name] }
    start(intervals: 2)
    wait_for { seen.size > 3 }
    expect(subscription.unsubscribe).to be(true)
    expect(subscription.unsubscribe).to be(false)
    intervals = described_class.intervals
    expect(intervals.size).to eq(2)
    expect(intervals.map(&:started_at)).to eq(intervals.map(&:started_at).sort)
    interval, thread = seen.pop
    expect(thread).to eq("memprof agent")
    expect(interval).to be_frozen
    expect(interval.report).to be_a(Memprof::Report)
    expect(interval.duration).to be_between(0.05, 60)
    expect(interval.rss).to be > 1_000_000
    expect(interval.labels).to eq(described_class.labels)
    # Not the duration: a brief interval pays for the end of the one before.
    expect(interval.cost[:cpu]).to be_between(0, Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID))
    expect(interval.to_h).to include(:started_at, :allocated, :retained, gc: interval.gc, rss: interval.rss)
    expect(interval.inspect).to match(/\A#<Memprof::Agent::Interval \d{4}-\d\d-\d\d [\d:]+, \d+\.\d s>\z/)
  end

  it "goes on if a subscriber raises, and logs that once" do
    calls = 0
    subscription = described_class.subscribe { (calls += 1) && raise("oops\nmore") }
    start
    wait_for { calls > 2 }
    expect(output.string.scan(/a subscriber raised .*/)).to eq(["a subscriber raised RuntimeError: oops"])
    expect(described_class).to be_running
  ensure
    subscription.unsubscribe
  end

  it "publishes by ActiveSupport::Notifications, if the program has that" do
    events = Queue.new
    notifications = Module.new
    notifications.define_singleton_method(:instrument) { |name, payload| events << [name, payload.keys] }
    stub_const("ActiveSupport::Notifications", notifications)
    start(limit: 1, check: 0.05, dump: false, leaks: "log", directory: Dir.mktmpdir)
    wait_for { events.size > 3 }
    described_class::Runner.leak("app.rb:3 grows")
    names = Array.new(events.size) { events.pop }.uniq
    expect(names).to contain_exactly(["interval.memprof", [:interval]], ["limit.memprof", %i[reason paths]],
      ["leak.memprof", [:leak]])
    expect(output.string).to include("memprof agent: app.rb:3 grows")
  ensure
    FileUtils.rm_rf(described_class.settings[:directory])
  end

  it "says once what it does and how to turn it off, and what it can't watch" do
    start(pressure: 5)
    wait_for { described_class.intervals.size > 1 }
    lines = output.string.scan(/memprof agent: (.*)/).flatten
    labels = described_class.labels
    expect(lines.first).to eq("profiles this process in intervals of 0.1 s (service #{labels[:service]}, " \
                              "release #{labels[:release] || "unknown"}, worker #{Process.pid}); " \
                              "MEMPROF_AGENT=off turns it off")
    expect(lines.grep(/profiles/).size).to eq(1)
    psi = File.exist?("/proc/pressure/memory")
    expect(lines.grep(/pressure is not watched/).size).to eq(psi ? 0 : 1)
  end

  it "switches itself off if it costs more than its budget" do
    start(budget: 1e-6)
    wait_for { !described_class.running? }
    expect(output.string).to match(
      /has switched itself off: it used [\d.]+ %, .* of a CPU in the last 3 intervals \(budget: 1.0e-06\)/
    )
    expect(described_class::Runner.stop).to be(false)
    expect(start).to be(true)
  end

  it "is off where the VM is not supported, with one line" do
    described_class.labels # loads it
    sampler = described_class.const_get(:Sampler)
    allow(sampler).to receive(:start).and_raise(Memprof::Unsupported, "this Ruby was not checked")
    expect([start, described_class.running?]).to eq([false, false])
    expect(output.string.lines.size).to eq(1)
    expect(output.string).to include("memprof agent: is off: this Ruby was not checked")
  end

  it "survives a bug of its own" do
    described_class.labels
    ledger = described_class::Ledger.new
    allow(ledger).to receive(:read).and_raise("bug\nmore")
    allow(described_class::Ledger).to receive(:new).and_return(ledger)
    start
    wait_for { !described_class.running? }
    expect(output.string).to match(/switched itself off after an internal error .*: bug \(RuntimeError, /)
  end

  it "calls on_limit with the paths, once in a cool-down" do
    Dir.mktmpdir do |directory|
      calls = Queue.new
      hook = ->(paths) { (calls << paths) && raise("hook") }
      start(limit: 1, check: 0.05, dump: false, directory: directory, on_limit: hook)
      wait_for { calls.size.positive? && described_class.intervals.size > 3 }
      described_class.stop
      expect(calls.size).to eq(1)
      names = calls.pop.map { |path| File.basename(path) }
      expect(names.first(3)).to eq(%w[about.json memory.json report.json])
      expect(output.string).to include("on_limit raised RuntimeError: hook")
      expect(output.string.scan(/RSS is .*: wrote .*/).size).to eq(1)
    end
  end

  it "refuses a mistake, and a mistake does not stop a running one" do
    expect { start(zork: 1) }.to raise_error(ArgumentError, /unknown setting/)
    expect(described_class).not_to be_running
    expect { described_class.subscribe }.to raise_error(ArgumentError, "block required")
  end

  it "is replaced by one that the program starts if it has started by itself" do
    described_class.labels
    expect(described_class::Runner.start({ logger: logger }, automatic: true)).to be(true)
    expect(described_class::Runner.start({ logger: logger }, automatic: true)).to be(false)
    expect(start(interval: 7)).to be(true)
    expect(described_class.settings[:interval]).to eq(7)
    expect(start(interval: 8)).to be(false)
  end

  it "never starts with MEMPROF_AGENT=off" do
    stub_const("ENV", ENV.to_h.merge("MEMPROF_AGENT" => "off"))
    expect([start, described_class.running?]).to eq([false, false])
  end
end
