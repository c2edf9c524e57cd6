# frozen_string_literal: true

# What does a dump of the heap cost, in time and bytes, compared with ObjectSpace.dump_all?

require "objspace"
require "tmpdir"
require_relative "support"
require_relative "support/heaps"
require "memprof/dump" # now, and not at first use

# How often each way is measured, by heap: a number of objects, or an app.
HEAPS = Bench::QUICK ? { 100_000 => 1 } : { 100_000 => 5, 1_600_000 => 3, 10_000_000 => 1 }
RAILS_ROUNDS = Bench.size(5, 1)
# Maximum bytes per object of such a heap, in memory while it is allocated, and in a dump.
MEMORY_PER_OBJECT = 250
FILE_PER_OBJECT = 700

# The measured ways: each writes one file whose name begins with the path.
WAYS = {
  "`ObjectSpace.dump_all`" => ->(path) { File.open(path, "w") { |file| ObjectSpace.dump_all(output: file) } },
  "`format: :objspace`" => ->(path) { Memprof.dump_all("#{path}.json", format: :objspace) },
  "`format: :memprof`" => ->(path) { Memprof.dump_all("#{path}.json") },
  "the same, `.zst`" => ->(path) { Memprof.dump_all("#{path}.json.zst") },
  "`format: :binary`" => ->(path) { Memprof.dump_all("#{path}.memprof") }
}.freeze
PEER, OBJSPACE, MEMPROF, _, BINARY = WAYS.keys

# One dump of one heap, in a separate process.
def measure(heap, way, path)
  kept = heap == "rails" ? Heaps.rails : Heaps.program(heap.to_i)
  GC.start
  GC.disable
  objects = ObjectSpace.count_objects.values_at(:TOTAL, :FREE).reduce(:-)
  cpu = nil
  wall = Bench.wall { cpu = Bench.processor { WAYS.fetch(way).call(path) } }
  bytes = Dir.glob("#{path}*").sum { |file| File.size(file) }
  raise "the heap is gone" unless kept

  { wall: wall, cpu: cpu, bytes: bytes, objects: objects }
end

Bench.answer(measure(*ARGV)) unless ARGV.empty?

# The reason why a heap of so many objects can't be measured here, or nil.
def too_large(objects)
  memory = File.foreach("/proc/meminfo").grep(/\AMemAvailable/).first[/\d+/].to_i * 1024
  disk = Open3.capture2("df", "-Pk", Dir.tmpdir).first.lines.last.split[3].to_i * 1024
  return "memory" if memory < objects * MEMORY_PER_OBJECT

  "disk space in #{Dir.tmpdir}" if disk < objects * FILE_PER_OBJECT
end

# Medians of `rounds` runs, by way and by figure.
def measured(heap, rounds)
  runs = Hash.new { |hash, way| hash[way] = [] }
  rounds.times do
    WAYS.each_key do |way|
      Dir.mktmpdir("memprof-bench-") do |directory|
        runs[way] << Bench.child(heap, way, File.join(directory, "heap"))
      end
    end
  end
  runs.transform_values do |results|
    results.first.keys.to_h { |key| [key, Bench::Sample.new(results.map { |run| run.fetch(key) }).median] }
  end
end

def ratio(heap, way, key)
  heap.fetch(way).fetch(key) / heap.fetch(PEER).fetch(key).to_f
end

def show(name, heap)
  objects = heap.fetch(PEER).fetch("objects").round
  header = [format(name, objects), "seconds", "CPU seconds", "ns an object", "bytes an object"]
  ratios = { "time" => "wall", "CPU" => "cpu", "size" => "bytes" }
  rows = heap.map do |way, run|
    [way, format("%.3f", run["wall"]), format("%.3f", run["cpu"]),
      format("%.0f", run["wall"] / objects * 1e9), format("%.1f", run["bytes"] / objects),
      *ratios.values.map { |key| format("%.3f", ratio(heap, way, key)) }]
  end
  Bench.table([*header, *ratios.keys.map { |what| "#{what} / objspace" }], rows)
end

Bench.title("What does a dump of the heap cost, in time and bytes, compared with ObjectSpace.dump_all?")
heaps = {}
HEAPS.each do |size, rounds|
  if (lacking = too_large(size))
    puts("#{size} objects: left out, there is not enough #{lacking}.", "")
  else
    show("%d objects", heaps["#{size} objects"] = measured(size, rounds))
  end
end
if Heaps.rails?
  show("Rails, %d objects", heaps["Rails"] = measured("rails", RAILS_ROUNDS))
else
  puts("A Rails app: left out, Rails is not installed, or not for this Ruby.", "")
end

# The worst heap of each format must stay within the limit.
def worst(heaps, way, key, must, aim, what)
  name, heap = heaps.max_by { |_, candidate| ratio(candidate, way, key) }
  Bench.limit("#{way}, #{what} / objspace's (#{name})", ratio(heap, way, key), must, aim)
end

Bench.table(Bench::LIMITS, [
  worst(heaps, OBJSPACE, "wall", 1 / 2.0, 1 / 3.5, "time"),
  worst(heaps, MEMPROF, "wall", 1.0, 1 / 2.0, "time"),
  worst(heaps, BINARY, "wall", 1 / 8.0, 1 / 14.0, "time"),
  worst(heaps, BINARY, "bytes", 1 / 10.0, 1 / 25.0, "size")
])
