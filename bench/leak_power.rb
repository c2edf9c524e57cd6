# frozen_string_literal: true

# How often is the verdict of leak_objects wrong: on bounded structures, and on leaks?

require_relative "support"
require "memprof/testing"

TRIALS = Bench.size(100, 2)

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

# @return [Array] share of the trials in which something grew, and the mean number of runs
def judge(make)
  runs = 0
  found = Array.new(TRIALS) do
    block = make.call
    leaks = Memprof::Testing::Leaks.new(times: 20, warmup: 3)
    leaks.found?(-> { (runs += 1) && block.call })
  end
  [found.count(true).fdiv(TRIALS), runs.fdiv(TRIALS).round]
end

Bench.title("How often is the verdict of leak_objects wrong?")
rows = { "no leak" => BOUNDED, "leak" => LEAKS }.flat_map do |truth, blocks|
  blocks.map do |name, make|
    share, runs = judge(make)
    [name, truth, format("%.0f %%", share * 100), runs]
  end
end
Bench.table(["block, run 20 times or more; #{TRIALS} trials", "truth", "said to leak", "runs"], rows)
