# frozen_string_literal: true

# What does a report cost, compared with memory_profiler's?

require_relative "support"

COUNT = Bench.size(500_000, 5_000)
ROUNDS = Bench.size(3, 1)

# The reported block; half of the objects are retained.
module Workload
  module_function

  def objects
    Array.new(COUNT / 2) do
      Object.new
      Object.new
    end
  end

  def strings
    Array.new(COUNT / 5) { |index| { id: index, name: "name #{index % 1000}".upcase, tags: ["a tag"] } }
  end
end

# One report, in a separate process: seconds, and growth of the peak RSS.
def measure(tool, workload)
  require "memory_profiler" if tool == "memory_profiler"
  block = -> { Workload.public_send(workload) }
  rows(tool) { nil } # loads everything needed
  GC.start
  before = Bench.peak_rss
  seconds = Bench.cpu { rows(tool, &block) }
  { seconds: seconds, peak: Bench.peak_rss - before }
end

# Builds the report and queries it, because some of the work may be deferred until then.
def rows(tool, &block)
  case tool
  when "memprof"
    report = Memprof.report(&block)
    report.allocated_objects_by_location.size + report.strings_allocated.size
  when "memory_profiler"
    report = MemoryProfiler.report(&block)
    report.allocated_objects_by_location.size + report.strings_allocated.size
  else
    block.call&.size
  end
end

Bench.answer(measure(*ARGV)) unless ARGV.empty?

begin
  require "memory_profiler"
rescue LoadError
  abort("report.rb: memory_profiler is not installed (bin/setup installs it); nothing is measured")
end

def samples(workload)
  tools = %w[none memprof memory_profiler]
  results = Hash.new { |hash, tool| hash[tool] = [] }
  ROUNDS.times { tools.each { |tool| results[tool] << Bench.child(tool, workload) } }
  results.transform_values do |runs|
    %w[seconds peak].to_h { |key| [key, Bench::Sample.new(runs.map { |run| run.fetch(key) }).median] }
  end
end

Bench.title("What does a report cost, compared with memory_profiler's?")
workloads = {
  "objects" => "#{COUNT} objects, no strings",
  "strings" => "#{COUNT} hashes, arrays and strings"
}
limits = workloads.flat_map do |workload, name|
  medians = samples(workload)
  names = { "none" => "the block alone", "memprof" => "Memprof", "memory_profiler" => "MemoryProfiler" }
  Bench.table([name, "CPU seconds", "peak RSS growth, MiB"],
    medians.map do |tool, run|
      [names.fetch(tool), format("%.3f", run["seconds"]), Bench.mebibytes(run["peak"])]
    end)
  ratio = ->(key) { medians["memprof"][key] / medians["memory_profiler"][key].to_f }
  [Bench.limit("#{workload}: time / MemoryProfiler's", ratio.call("seconds"), 1 / 10.0, 1 / 25.0),
    Bench.limit("#{workload}: peak RSS growth / MemoryProfiler's", ratio.call("peak"), 1 / 4.0, 1 / 10.0)]
end
Bench.table(Bench::LIMITS, limits)
