# frozen_string_literal: true

require "memprof/agent"
require "memprof/agent/metrics"

RSpec.describe Memprof::Agent::Metrics do
  include AgentIntervals

  before do
    Memprof::Agent::Work.clear
    allow(Memprof::Agent).to receive(:labels).and_return(AgentIntervals::LABELS)
  end

  after { Memprof::Agent::Work.clear }

  def metrics(totals) = described_class.new(totals)

  def family(totals, name) = metrics(totals).families.find { |family| family.name == "memprof_#{name}" }

  it "shows live bytes of the largest sites, and the rest as one" do
    code = Array.new(60) { |line| "$kept << 'x' * #{1000 + line}\n" }.join
    $kept = []
    one = interval { run_as(code, "/srv/app/models/page.rb") }
    samples = family(totals_of(one), "site_live_bytes").samples
    expect(samples.size).to eq(described_class::SITES + 1)
    expect(samples.sum(&:last)).to eq(one.report.total_retained_memsize)
    expect(samples.map { |_, labels, _| labels }).to all(include("worker" => "0"))
    expect(samples.map { |_, labels, _| labels["site"] }).to include(end_with("page.rb:60"), "other")
    expect(samples.map { |_, labels, _| labels }.uniq.size).to eq(samples.size)
  ensure
    $kept = nil
  end

  it "has counters that only go up" do
    totals = totals_of(interval { Object.new })
    before = family(totals, "allocated_bytes").samples.first.last
    totals.add(interval(at: 1_700_000_060) { Array.new(50) { Object.new } })
    expect(family(totals, "allocated_bytes").samples.first.last).to be > before
    expect(family(totals, "agent_cpu_seconds").samples.first.last).to eq(1.0)
  end

  it "leaves out what is unknown" do
    names = metrics(Memprof::Agent::Totals.new).families.map(&:name)
    expect(names).to include("memprof_agent", "memprof_live_slots", "memprof_gc_runs", "memprof_leaks")
    expect(names).not_to include("memprof_site_live_bytes", "memprof_allocated_bytes",
      "memprof_memory_part_bytes",
      "memprof_action_allocated_bytes")
  end

  it "shows the parts of the memory, which add up to it" do
    memory = Memprof.memory
    samples = family(totals_of(interval(memory: memory) { Object.new }), "memory_part_bytes").samples
    expect(samples.sum(&:last)).to eq(memory.rss)
  end

  it "shows actions and jobs, of a bounded number" do
    500.times do |number|
      Memprof::Agent::Work.record(kind: :action, name: "A#{number}#show", duration: 0.1, bytes: 10,
        objects: 1)
      Memprof::Agent::Work.record(kind: :job, name: "Job#{number}", duration: 2)
    end
    families = metrics(Memprof::Agent::Totals.new).families
    of = ->(name) { families.find { |family| family.name == "memprof_#{name}" } }
    expect(of.("action_allocated_bytes").samples.sum(&:last)).to eq(5000)
    expect(of.("job_allocated_bytes")).to be_nil
    expect(%w[action job].map { |kind| of.("#{kind}_counted").samples.sum(&:last) }).to eq([500, 0])
    counts = of.("job_duration_seconds").samples.select { |suffix, _, _| suffix == "_count" }
    expect(counts.size).to eq(Memprof::Agent::Work::NAMES + 1)
    expect(counts.sum(&:last)).to eq(500)
  end

  it "names leaks" do
    leak = Struct.new(:file, :line, :class_name, :bytes_per_hour)
    allow(Memprof::Agent).to receive(:leaks)
      .and_return(Array.new(30) { |number| leak.new("app.rb", number, "String", 1000.0 + number) })
    totals = Memprof::Agent::Totals.new
    expect(family(totals, "leaks").samples.first.last).to eq(30)
    samples = family(totals, "leak_bytes_per_hour").samples
    expect(samples.size).to eq(21)
    expect(samples.sum(&:last)).to eq(30.times.sum { |number| 1000.0 + number })
  end

  it "is the same text for all who ask within a second" do
    now = 100.0
    shown = described_class.new(Memprof::Agent::Totals.new, clock: double(now: nil).tap { |clock|
      allow(clock).to receive(:now) { now }
    })
    first = shown.text(:prometheus)
    expect(shown.text(:prometheus)).to equal(first)
    expect(shown.text(:openmetrics)).to end_with("# EOF\n")
    now += 2
    expect(shown.text(:prometheus)).not_to equal(first)
  end
end
