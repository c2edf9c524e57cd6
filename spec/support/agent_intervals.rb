# frozen_string_literal: true

# Intervals as the agent has them, of reports of blocks.
module AgentIntervals
  LABELS = { service: "shop", release: "3fe2a1", host: "web-1", worker: "0", pid: 4711 }.freeze

  # @return [Memprof::Agent::Interval]
  def interval(report = nil, at: 1_700_000_000, **facts, &block)
    report ||= Memprof.report(stack: 8, &block)
    Memprof::Agent::Interval.new(report: report, started_at: at, duration: 60.0, labels: LABELS,
      gc: { minor: 3, major: 1, time: 0.25 }, cost: { cpu: 0.5, memory: 1_000_000 }, **facts)
  end

  # Sums of these, of an agent that does not run.
  def totals_of(*intervals, **options)
    Memprof::Agent::Totals.new(**options).tap { |totals| intervals.each { |one| totals.add(one) } }
  end

  # Strings allocated in files with hostile names.
  def hostile(file: "/srv/odd\"\\\nname\xFF.rb", count: 10)
    Array.new(count) { |index| run_as("\"x\".dup << \"y\" * 100", "#{file}#{index}") }
  end

  # Runs code as if it were in this file.
  def run_as(code, file) = RubyVM::InstructionSequence.compile(code, file, file).eval
end
