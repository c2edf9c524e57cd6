# frozen_string_literal: true

# What does a recording of malloc cost per block that is freed at once, and per live block? And a sampled one?

require_relative "support"

ROUNDS = Bench.size(15, 2)
STRINGS = Bench.size(400_000, 2_000)
LIVE = Bench.size(200_000, 2_000)

def storm
  STRINGS.times { |index| "x" * (100 + (index & 1023)) }
end

def fill
  $kept = nil
  GC.start
  Bench.processor { $kept = Array.new(LIVE) { |index| "x" * (40 + (index & 255)) } }
end

def recorded(**options)
  Memprof::Malloc.start(**options)
  yield
ensure
  Memprof::Malloc.stop
end

def bytes_per_block
  recorded do
    fill
    Memprof.const_get(:Native)::Malloc.memsize / Memprof::Malloc.locations.sum(&:live).to_f
  end
end

Bench.title("What does a recording of malloc cost?")
storm
samples = Bench.in_turn(ROUNDS, {
  "freed at once" => -> { Bench.cpu { storm } },
  "freed at once, recorded" => -> { recorded { Bench.cpu { storm } } },
  "freed at once, sampled" => -> { recorded(sample: "512 KiB") { Bench.cpu { storm } } },
  "freed at once, sampled with native stacks" =>
    -> { recorded(sample: "512 KiB", stack: 64, native: true) { Bench.cpu { storm } } }
})
# Last, because each GC of a storm would mark the retained strings.
samples.merge!(Bench.in_turn(ROUNDS, { "kept" => -> { fill }, "kept, recorded" => -> { recorded { fill } } }))
Bench.table(["strings outside of Ruby's heap, seconds", "median", "spread"],
  samples.map { |name, sample| [name, format("%.3f", sample.median), sample.spread] })
ratio = ->(name, how = "recorded") { samples["#{name}, #{how}"].median / samples[name].median }
Bench.table(Bench::LIMITS, [
  Bench.limit("freed at once, relative to not recorded", ratio.call("freed at once"), 1.45, 1.25),
  Bench.limit("the same, sampled at 512 KiB", ratio.call("freed at once", "sampled"), 1.05, 1.03),
  Bench.limit("with native stacks", ratio.call("freed at once", "sampled with native stacks"), 1.05, 1.03),
  Bench.limit("bytes per live block", bytes_per_block, 32, 16)
])
Bench.table(["", "median"], [["kept, relative to not recorded", format("%.2f", ratio.call("kept"))]])
