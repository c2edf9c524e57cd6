# frozen_string_literal: true

# What do call stacks cost, fifty frames deep?

require_relative "support"

COUNT = Bench.size(200_000, 10_000)
ROUNDS = Bench.size(15, 2)
DEPTH = 50

# Fifty frames above the allocating one.
def descend(depth, &block)
  depth.zero? ? block.call : descend(depth - 1, &block)
end

def per_object(**options)
  Memprof.start(**options) unless options.empty?
  time = nil
  descend(DEPTH) { time = Bench.cpu { Bench.objects(COUNT) } }
  time / COUNT
ensure
  Memprof.stop
end

Bench.title("What do call stacks cost, fifty frames deep?")
samples = Bench.in_turn(ROUNDS, {
  "untracked" => -> { per_object },
  "`stack: 1`" => -> { per_object(stack: 1) },
  "`stack: 8`" => -> { per_object(stack: 8) },
  "`stack: 64`" => -> { per_object(stack: 64) }
})
Bench.table(["nanoseconds per object", "median", "spread"],
  samples.map { |name, sample| [name, Bench.nanoseconds(sample.median), sample.spread] })
ratio = samples["`stack: 64`"].median / samples["`stack: 1`"].median
Bench.table(Bench::LIMITS, [Bench.limit("`stack: 64` / `stack: 1`", ratio, 4.5, 2.0)])
