# frozen_string_literal: true

# How long do the stats of the live objects take?

require_relative "support"

COUNT = Bench.size(2_000_000, 20_000)
SITES = Bench.size(10_000, 100)
ROUNDS = Bench.size(15, 2)

# A method with one line per site. Each allocates a retained object.
source = "def fill(kept)\n#{"  kept << Object.new\n" * SITES}end\n"
eval(source, binding, "generated.rb", 0) # rubocop:disable Security/Eval

Bench.title("How long do the stats of the live objects take?")
kept = []
Memprof.start
(COUNT / SITES).times { fill(kept) }
samples = Bench.in_turn(ROUNDS, {
  "processor" => -> { Bench.cpu { Memprof.stats(File::NULL) } },
  "clock" => -> { Bench.wall { Memprof.stats(File::NULL) } }
})
Memprof.stop

Bench.table(["stats of #{kept.size} objects at #{SITES} sites, seconds", "median", "spread"],
  samples.map { |name, sample| [name, format("%.4f", sample.median), sample.spread] })
Bench.table(Bench::LIMITS, [Bench.limit("seconds", samples["clock"].median, 0.5, 0.1)])
