# frozen_string_literal: true

# How long, and how much memory, does it take to find what retains most, compared with other programs?

require "fileutils"
require "tmpdir"
require_relative "support"
require_relative "support/heaps"
require_relative "support/peers"
require "memprof/dump"
require "memprof/heap"

# Objects of the dumped heaps. Their JSON takes some 410 bytes per object, in TMPDIR.
SIZES = Heaps.sizes(1_600_000, 10_000_000).freeze
# An existing dump of any size and origin, used instead.
DUMP = ENV["BENCH_DUMP"]
ROUNDS = Bench.size(3, 1)
# The question that other programs can answer, too.
OURS = "memprof, objspace's JSON"
SNAPSHOT = 3_000_000 # objects of a `.heapsnapshot`
# Objects from which limits in seconds apply: for all questions, and for reading alone.
LARGE = 10_000_000
GIANT = 100_000_000

# Commands of the children.
module Ask
  module_function

  # Dumps of a heap of so many objects, with their allocation sites.
  def dump(objects, directory)
    Memprof.start
    kept = Heaps.program(objects.to_i)
    Memprof.dump_all(File.join(directory, "heap.json"), format: :objspace)
    Memprof.dump_all(File.join(directory, "heap.memprof"))
    raise "the heap is gone" unless kept

    { objects: ObjectSpace.count_objects.values_at(:TOTAL, :FREE).reduce(:-) }
  end

  def size(path)
    { objects: Memprof::Heap.open(path).size }
  end

  # The ten objects with the largest retained size: read from the dump, like one of another program.
  def top(path)
    measure { Memprof::Heap.open(path, index: false).ask(:top, limit: 10, sort: "retained") }
  end

  # The same, from an index.
  def top_again(path)
    measure { Memprof::Heap.open(path).ask(:top, limit: 10, sort: "retained") }
  end

  # From the dump to an index next to it.
  def open(path)
    FileUtils.rm_f("#{path}.memprof-index")
    measure { Memprof::Heap.open(path) }
  end

  def open_again(path)
    measure { Memprof::Heap.open(path) }
  end

  # The question of `memprof leaks`.
  def leaks(path)
    measure { Memprof::Heap.open(path).ask(:leaks) }
  end

  # An export for DevTools.
  def snapshot(path)
    Dir.mktmpdir do |directory|
      heap = Memprof::Heap.open(path)
      file = File.join(directory, "heap.heapsnapshot")
      measure { heap.export(file, format: :heapsnapshot, limit: SNAPSHOT) }
    end
  end

  def measure(&block)
    cpu = nil
    wall = Bench.wall { cpu = Bench.processor(&block) }
    { wall: wall, cpu: cpu, memory: Bench.peak_rss }
  end
end

Bench.answer(Ask.public_send(*ARGV)) unless ARGV.empty?

# The medians of each way; a text if one could not be measured.
def measured(ways)
  runs = ways.transform_values { [] }
  ROUNDS.times { ways.each { |name, way| runs[name] << way.call } }
  runs.transform_values do |results|
    results.find { |result| result.is_a?(String) } ||
      results.first.keys.to_h { |key| [key, Bench::Sample.new(results.map { |run| run.fetch(key) }).median] }
  end
end

# memprof and other programs: finding what retains most.
def tops(json, binary)
  ways = json ? Peers.all.to_h { |peer| [peer.name, -> { peer.measure(json) }] } : {}
  ways[OURS] = -> { Bench.child("top", json) } if json
  ways["memprof, binary"] = -> { Bench.child("top", binary) } if binary
  ways.merge("memprof, from its index" => -> { Bench.child("top_again", binary || json) })
end

# memprof's other operations on a dump. `open` runs before those that need its index.
def others(json, binary)
  ways = {}
  ways["JSON to an index"] = -> { Bench.child("open", json) } if json
  ways["binary to an index"] = -> { Bench.child("open", binary) } if binary
  { "second opening" => :open_again, "`leaks`, from the index" => :leaks,
    "`.heapsnapshot` of #{SNAPSHOT}, from the index" => :snapshot }.each do |name, question|
    ways[name] = -> { Bench.child(question, binary || json) }
  end
  ways
end

def figures(run)
  [format("%.3g", run["wall"]), format("%.3g", run["cpu"]), format("%.0f", run["memory"] / (1 << 20))]
end

def show(heading, runs, ours)
  known = runs.reject { |_, run| run.is_a?(String) }
  rows = known.map do |name, run|
    ratios = %w[wall cpu memory].map { |key| ours ? format("%.3g", run[key] / ours[key]) : "-" }
    [name, *figures(run), *ratios]
  end
  columns = ["seconds", "CPU seconds", "peak MiB", "time / JSON", "CPU / JSON", "memory / JSON"]
  Bench.table([heading, *columns], rows)
  (runs.to_a - known.to_a).each { |name, reason| puts("#{name}: not measured: #{reason}") }
  puts unless known.size == runs.size
end

# Limits relative to reap, for any size; in seconds, by size.
def limits(objects, tops, others)
  against_reap(tops) + case objects
  when LARGE...GIANT then in_seconds(tops, others)
  when GIANT.. then reading(others)
  else []
  end
end

def reading(others)
  run = others["binary to an index"] or return []
  [Bench.limit("binary to an index", run["wall"], 180.0, 60.0, " s")]
end

def against_reap(tops)
  ours, binary, reap = tops.values_at(OURS, "memprof, binary", "reap")
  return [] unless ours && binary && reap.is_a?(Hash)

  [Bench.limit("JSON, time / reap", ours["wall"] / reap["wall"], 1 / 12.0, 1 / 20.0),
    Bench.limit("binary, time / reap reading JSON", binary["wall"] / reap["wall"], 1 / 25.0, 1 / 50.0),
    Bench.limit("JSON, peak memory / reap", ours["memory"] / reap["memory"], 1 / 5.0, 1 / 10.0)]
end

def in_seconds(tops, others)
  rows = [Bench.limit("second opening", others["second opening"]["wall"], 0.2, 0.05, " s")]
  if (ours = tops[OURS])
    rows << Bench.limit("JSON to the answer", ours["wall"], 15.0, 8.0, " s")
    rows << Bench.limit("and its peak memory", ours["memory"] / 1e9, 1.5, 1.5, " GB")
  end
  snapshot = others.find { |name, _| name.include?("heapsnapshot") }.last
  rows << Bench.limit("`.heapsnapshot`", snapshot["wall"], 3.0, 1.5, " s")
end

# Everything about one heap, with one dump or both: other programs can read `json`.
def compare(objects, json, binary)
  # Questions that need the index come after the one that writes it.
  others = measured(others(json, binary))
  tops = measured(tops(json, binary))
  show("#{objects} objects: what retains most", tops, tops[OURS])
  show("memprof", others, tops[OURS])
  rows = limits(objects, tops, others)
  Bench.table(Bench::LIMITS, rows) unless rows.empty?
end

Bench.title("How long does it take to ask a dump what retains most, beside what others take?")
if DUMP
  dumps = DUMP.end_with?(".json") ? [DUMP, nil] : [nil, DUMP]
  compare(Bench.child("size", DUMP).fetch("objects"), *dumps)
else
  SIZES.each do |size|
    Dir.mktmpdir("memprof-bench-") do |directory|
      objects = Bench.child("dump", size, directory).fetch("objects")
      compare(objects, File.join(directory, "heap.json"), File.join(directory, "heap.memprof"))
    end
  end
end
