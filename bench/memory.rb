# frozen_string_literal: true

# How much memory does tracking take, per live object?

require "objspace"
require_relative "support"

COUNT = Bench.size(2_000_000, 50_000)
ROUNDS = Bench.size(5, 1)

# Growth of a child's memory while it allocates retained objects.
def growth(way)
  kept = Array.new(COUNT)
  case way
  when "start" then Memprof.start
  when "objspace" then ObjectSpace.trace_object_allocations_start
  end
  GC.start
  before = Bench.rss
  index = 0
  while index < COUNT
    kept[index] = Object.new
    index += 1
  end
  Bench.rss - before
end

Bench.answer(growth(ARGV.first)) unless ARGV.empty?

Bench.title("How much memory does tracking take, per live object?")
ways = { "untracked" => "none", "`start`" => "start", "trace_object_allocations" => "objspace" }
samples = Bench.in_turn(ROUNDS, ways.transform_values { |way| -> { Bench.child(way) } })
base = samples.fetch("untracked").median
per_object = samples.transform_values { |sample| (sample.median - base) / COUNT }
Bench.table(["#{COUNT} objects", "RSS added, MiB", "more than untracked, bytes per object"],
  samples.map { |name, sample| [name, Bench.mebibytes(sample.median), format("%.1f", per_object[name])] })
Bench.table(Bench::LIMITS, [
  Bench.limit("RSS per live tracked object", per_object.fetch("`start`"), 24, 12, " bytes")
])
