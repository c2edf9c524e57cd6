# frozen_string_literal: true

require "json"
require "memprof"
require "memprof/agent/sampler"

RSpec.describe "Memprof::Agent::Sampler" do
  let(:sampler) { Memprof::Agent.const_get(:Sampler) }

  after { sampler.stop }

  # The differences between estimates and the truth in standard errors.
  def deviation(sites, errors, wanted, exact, kind)
    chosen = sites.each_index.select { |at| wanted.call(sites[at]) }
    estimate = chosen.sum { |at| sites[at].public_send("#{kind}_objects") }
    column = kind == :allocated ? 0 : 2
    error = Math.sqrt(chosen.sum { |at| errors[at][column]**2 })
    (estimate - exact) / error
  end

  # Allocates until there were so many samples, or it takes too long.
  def sampled(samples, patience: 60)
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + patience
    reports = []
    until reports.sum { |_, facts| facts[:samples] } > samples
      raise "too few samples" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline

      yield
      reports << sampler.interval
    end
    reports
  end

  it "starts once, and stops" do
    expect([sampler.running?, sampler.stop]).to eq([false, false])
    expect([sampler.start, sampler.start, sampler.running?]).to eq([true, false, true])
    expect([sampler.stop, sampler.running?]).to eq([true, false])
    expect { sampler.interval }.to raise_error(Memprof::NotRunning)
  end

  it "rejects invalid options" do
    expect { sampler.start(share: 0) }.to raise_error(ArgumentError, /share must be a number above 0/)
    expect { sampler.start(stack: 0) }.to raise_error(ArgumentError, /stack must be 1 to/)
    expect(sampler).not_to be_running
  end

  it "estimates what lines allocate, and the errors of that" do
    sampler.start(share: 0.2, budget: 1)
    exact = 0
    reports = sampled(2000) do
      200_000.times { Object.new }
      exact += 200_000
    end
    line = __LINE__ - 3
    wanted = ->(site) { site.file == __FILE__ && site.line == line && site.class_name == "Object" }
    sum = reports.sum { |report, _| report.sites.select(&wanted).sum(&:allocated_objects) }
    variance = reports.sum do |report, facts|
      report.sites.each_with_index.sum { |site, at| wanted.call(site) ? facts[:errors][at][0]**2 : 0 }
    end
    expect((sum - exact) / Math.sqrt(variance)).to be_between(-5, 5)
    facts = reports.last.last
    expect(facts[:cost][:memory]).to be_between(1, 8 << 20)
    expect(facts).to include(:started_at, :duration, gc: include(:minor, :major, :time))
    expect(facts[:errors].size).to eq(reports.last.first.sites.size)
    expect(facts[:ages].size).to eq(facts[:errors].size)
  end

  it "gives lines of different density, stacks and phases the shares that exact tracking gives them" do
    stub_const("Deep", Class.new)
    stub_const("Rare", Class.new)
    deep = ->(level) { level.zero? ? 300.times { Deep.new } : deep.call(level - 1) }
    phase = ->(length) do
      (length * 1000).times { Object.new }
      length.times { deep.call(40) }
      (length * 60).times { Rare.new.then { |object| 200.times { object } } }
      (length * 500).times { [length] }
    end
    program = proc { [1, 4, 1, 16].each(&phase) }
    sites = Memprof.report(&program).sites.select { |site| site.allocated_objects > 1000 }
    exact = sites.to_h { |site| [[site.line, site.class_name], site.allocated_objects] }
    sampler.start(share: 0.2, budget: 1)
    60.times(&program)
    report, facts = sampler.interval
    differences = exact.map do |(line, name), objects|
      wanted = ->(site) { site.file == __FILE__ && site.line == line && site.class_name == name }
      deviation(report.sites, facts[:errors], wanted, 60 * objects, :allocated)
    end
    expect(exact.keys.map(&:last)).to match_array(%w[Object Deep Rare Array])
    expect(differences).to all(be_between(-5, 5))
  end

  it "becomes rarer rather than exceed its budget" do
    samples = -> do
      100.times { 10_000.times { Object.new } }
      sampler.interval.last[:samples]
    end
    sampler.start(share: 0.2, budget: 1)
    unlimited = samples.call
    sampler.stop
    sampler.start(share: 0.2, budget: 0.001)
    deadline = Time.now + 60
    # It finds its pace as bursts come.
    nil until samples.call < unlimited / 3 || Time.now > deadline
    expect(Time.now).to be < deadline
  end

  it "knows which objects are alive" do
    stub_const("Held", Class.new)
    sampler.start(share: 0.2, budget: 1)
    kept = []
    sampled(2000) do
      20_000.times do |index|
        kept << Held.new if index.even?
        Held.new
      end
    end
    # What the VM says is alive, and how far the estimate is from that.
    live = -> do
      GC.start
      GC.start(full_mark: false)
      report, facts = sampler.interval
      exact = ObjectSpace.each_object(Held).count
      [exact, deviation(report.sites, facts[:errors], ->(site) {
                                                        site.class_name == "Held"
                                                      }, exact, :retained)]
    end
    all, difference = live.call
    expect(difference).to be_between(-5, 5)
    kept.fill(nil, kept.size / 2)
    half, difference = live.call
    expect(half).to be < all * 0.6
    expect(difference).to be_between(-5, 5)
  end

  it "works beside a session, and neither sees the other" do
    sampler.start(share: 0.2, budget: 1)
    report = Memprof.report { 1000.times { Object.new } }
    expect(report.sites.select { |site| site.class_name == "Object" }.sum(&:allocated_objects)).to eq(1000)
    sampler.stop
    report = Memprof.report { 1000.times { Object.new } }
    expect(report.sites.select { |site| site.class_name == "Object" }.sum(&:allocated_objects)).to eq(1000)
  end
end
