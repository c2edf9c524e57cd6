# frozen_string_literal: true

# How long, and how much memory, does `memprof leaks` take for three dumps of a growing heap?

require "fileutils"
require "tmpdir"
require_relative "support"
require_relative "support/heaps"
require "memprof/cli"
require "memprof/dump"

SIZES = Heaps.sizes(1_000_000, 16_000_000).freeze
ROUNDS = Bench.size(5, 1)
# Number of objects from which the limits of a large heap apply.
LARGE = 10_000_000
# The part of the heap that leaks between two dumps.
GROWTH = 0.01

# Commands of the children.
module Ask
  module_function

  # Three dumps, each with a hundredth more objects in an Array.
  def dump(objects, directory)
    Memprof.start
    kept = [Heaps.program(objects.to_i)]
    leak = []
    3.times do |number|
      Memprof.dump_all(File.join(directory, "heap-#{number}.memprof"))
      leak.concat(Array.new((objects.to_i * GROWTH).to_i) { |at| "leaks #{at}" })
    end
    raise "the heap is gone" unless kept

    {}
  end

  # Runs the command without an index.
  def leaks(*paths)
    paths.each { |path| FileUtils.rm_f("#{path}.memprof-index") }
    $stderr.reopen(File::NULL) # where it prints the next steps
    answer = "#{File.dirname(paths.first)}/answer"
    status = nil
    wall = Bench.wall { status = Memprof::CLI.start(["leaks", "--output", answer, *paths]) }
    said = File.read(answer)
    raise "memprof leaks exits with #{status}" unless [0, nil].include?(status)
    raise "it does not name what grows: #{said}" unless said.match?(/more String instances/)

    { wall: wall, memory: Bench.peak_rss }
  end
end

Bench.answer(Ask.public_send(*ARGV)) unless ARGV.empty?

# Seconds and MiB: must, and aim. For a large heap there are memory limits, too.
def limits(objects, seconds, memory)
  name = "#{objects} objects, three dumps"
  rows = [Bench.limit("#{name}, seconds", seconds, *(objects < LARGE ? [1.5, 1.0] : [15.0, 8.0]))]
  rows << Bench.limit("#{name}, peak MiB", memory, 4096, 4096) if objects >= LARGE
  rows
end

Bench.title("How long does `memprof leaks` take for three dumps of a heap that grows?")
SIZES.each do |objects|
  Dir.mktmpdir do |directory|
    Bench.child("dump", objects, directory)
    paths = Dir[File.join(directory, "*.memprof")].sort
    runs = Array.new(ROUNDS) { Bench.child("leaks", *paths) }
    seconds, memory = %w[wall memory].map { |key| Bench::Sample.new(runs.map { |run| run.fetch(key) }) }
    Bench.table(["#{objects} objects", "median", "spread"], [
      ["seconds", format("%.3g", seconds.median), seconds.spread],
      ["peak MiB", format("%.0f", memory.median / (1 << 20)), memory.spread]
    ])
    Bench.table(Bench::LIMITS, limits(objects, seconds.median, memory.median / (1 << 20)))
  end
end
