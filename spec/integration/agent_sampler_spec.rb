# frozen_string_literal: true

# The agent's sampler in programs that stress it.
RSpec.describe "The agent's sampler", :integration do
  let(:start) { <<~RUBY }
    require "memprof"
    require "memprof/agent/sampler"
    SAMPLER = Memprof::Agent.const_get(:Sampler)
    DEADLINE = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 60
    # Repeats the block until it has got enough samples; the reports by interval.
    def until_sampled(count)
      taken = []
      until taken.sum { |_, facts| facts[:samples] } >= count
        abort "too few samples" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > DEADLINE
        yield
        taken << SAMPLER.interval
      end
      taken
    end
  RUBY

  def run(code, **options)
    result = run_ruby("#{start}\n#{code}", **options)
    # Where Ractors crash the VM, a warning says that nothing is recorded beside them.
    errors = result.stderr.lines.reject { |line| line.include?("Bug #18464") }
    expect([errors, result.status.success?]).to eq([[], true])
    result.stdout
  end

  it "gives long C calls and short ones the share that they have" do
    output = run(<<~RUBY)
      require "json"
      long = JSON.generate(Array.new(40_000) { |index| [index.to_s] })
      short = JSON.generate([["1"]])
      SAMPLER.start(budget: 1, share: 0.2, stack: 1)
      exact = Hash.new(0)
      count = lambda do |line, &work|
        before = GC.stat(:total_allocated_objects)
        work.call
        exact[line] += GC.stat(:total_allocated_objects) - before
      end
      # What a sample stands for is measured in earlier bursts.
      until_sampled(4000) do
        JSON::Parser.new(long).parse
        8000.times { JSON::Parser.new(short).parse }
      end
      lines = { long: __LINE__ + 4, short: __LINE__ + 5 }
      taken = until_sampled(3000) do
        # An interval's estimates add up to what it allocated, so it needs more than a few bursts.
        50.times do
          count.call(:long) { JSON::Parser.new(long).parse }
          count.call(:short) { 8000.times { JSON::Parser.new(short).parse } }
        end
      end
      lines.each do |kind, line|
        estimate = variance = 0.0
        taken.each do |report, facts|
          report.sites.each_with_index do |site, at|
            next if site.line != line

            estimate += site.allocated_objects
            variance += facts[:errors][at][0]**2
          end
        end
        puts [estimate / exact[kind], Math.sqrt(variance) / exact[kind]].join(" ")
      end
    RUBY
    expect(output.lines.map(&:to_f)).to all(be_between(0.5, 2))
  end

  it "starts while each allocation collects garbage" do
    expect(run("GC.stress = true; started = SAMPLER.start; GC.stress = false; puts started")).to eq("true\n")
  end

  it "survives GC.stress, compaction, threads and a second Ractor" do
    output = run(<<~RUBY, ruby_args: ["-W:no-experimental"])
      SAMPLER.start(budget: 1, share: 0.3)
      kept = []
      threads = Array.new(3) { Thread.new { 20_000.times { kept << Object.new } } }
      threads.each(&:join)
      GC.compact if GC.respond_to?(:compact)
      SAMPLER.interval
      GC.stress = true
      500.times { kept << [Object.new, "text" * 10] }
      GC.stress = false
      SAMPLER.interval
      ractor = Ractor.new { 1000.times { Object.new }; 1 }
      ractor.respond_to?(:value) ? ractor.value : ractor.take
      5.times { GC.start; 20_000.times { Object.new } }
      SAMPLER.interval
      20_000.times { Object.new }
      p SAMPLER.running?, SAMPLER.interval.size
    RUBY
    expect(output).to eq("true\n2\n")
  end

  it "goes on in forked children, and ends with the program" do
    output = run(<<~RUBY)
      SAMPLER.start(budget: 1, share: 0.3)
      statuses = Array.new(20) do
        10_000.times { Object.new }
        pid = fork { until_sampled(10) { 20_000.times { Object.new } } }
        Process.wait2(pid).last.success?
      end
      p statuses.uniq
      until_sampled(10) { 20_000.times { Object.new } }
      puts File.exist?("/proc/self/task") ? Dir["/proc/self/task/*/comm"].count { |name| File.read(name) == "memprof-agent\\n" } : 1
      # The program ends while a burst may be on.
    RUBY
    expect(output).to eq("[true]\n1\n")
  end

  it "can be started and stopped a thousand times" do
    output = run(<<~RUBY)
      1000.times { SAMPLER.start(budget: 1, share: 0.5); Object.new; SAMPLER.stop }
      p SAMPLER.running?
    RUBY
    expect(output).to eq("false\n")
  end
end
