# frozen_string_literal: true

# How often are the verdicts of leak_objects and Memprof.growth wrong: on bounded structures, and on leaks?

require_relative "support"
require "memprof/testing"

TRIALS = Bench.size(100, 1)

# Each returns a new block, which then runs as in a test.
BOUNDED = {
  "a full ring buffer of 64" => -> do
    ring = Array.new(64) { Object.new }
    turn = 0
    -> { ring[(turn += 1) % 64] = Object.new }
  end,
  "a memo of 15 random keys" => -> do
    memo = {}
    -> { memo[rand(15)] ||= Object.new }
  end,
  "a memo of 40 random keys" => -> do
    memo = {}
    -> { memo[rand(40)] ||= Object.new }
  end,
  "a memo of 100 random keys" => -> do
    memo = {}
    -> { memo[rand(100)] ||= Object.new }
  end,
  "an LRU cache of 10, cold, 30 random keys" => -> do
    cache = {}
    -> do
      key = rand(30)
      cache[key] = cache.delete(key) || Object.new
      cache.shift if cache.size > 10
    end
  end
}.freeze

LEAKS = {
  "1 object in every run" => ->(runs) { runs >= 0 },
  "1 object in every third run" => ->(runs) { (runs % 3).zero? },
  "1 object in every fifth run" => ->(runs) { (runs % 5).zero? },
  "1 object in a run, with probability 1/5" => ->(_) { rand < 0.2 }
}.transform_values do |leaks|
  -> do
    kept = []
    runs = 0
    -> { kept << Object.new if leaks.call(runs += 1) }
  end
end

JUDGES = [
  ->(block) { Memprof::Testing::Leaks.new(times: 20, warmup: 3).found?(block) },
  ->(block) { Memprof.growth(times: 20, warmup: 3, &block).grows? }
].freeze

# @return [Array] share of the trials with growth, and the mean number of runs, for each judge
def judge(make)
  JUDGES.flat_map do |judge|
    runs = 0
    found = Array.new(TRIALS) do
      block = make.call
      judge.call(-> { (runs += 1) && block.call })
    end
    [format("%.0f %%", found.count(true) * 100.0 / TRIALS), runs.fdiv(TRIALS).round]
  end
end

Bench.title("How often are the verdicts of leak_objects and Memprof.growth wrong?")
rows = { "no leak" => BOUNDED, "leak" => LEAKS }.flat_map do |truth, blocks|
  blocks.map do |name, make|
    [name, truth, *judge(make)]
  end
end
heading = ["block, run 20 times or more; #{TRIALS} trials", "truth", "leak_objects", "runs", "growth", "runs"]
Bench.table(heading, rows)
