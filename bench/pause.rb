# frozen_string_literal: true

# How long does a dump by a forked child pause the process, and what memory does the child take?

require "tmpdir"
require_relative "support"
require_relative "support/heaps"
require "memprof/dump" # now, and not at first use

# Objects for a process of 1.5 GB; a quick run uses a tenth.
COUNT = Bench.size(14_800_000, 148_000)
ROUNDS = Bench.size(3, 1)
TICK = 0.001
SETTLE = 0.3
# Seconds between two readings of the child's memory.
LOOK = 0.005

# Seconds between two wakeups of a thread that wakes every millisecond: the longest, and the typical.
def gaps
  all = []
  stop = false
  ticker = Thread.new do
    last = now
    until stop
      sleep(TICK)
      all << -last + (last = now)
    end
  end
  sleep(SETTLE)
  yield
  sleep(SETTLE)
  stop = true
  ticker.join
  [all.max, Bench::Sample.new(all).median]
end

def now
  Process.clock_gettime(Process::CLOCK_MONOTONIC)
end

# The maximum delay of the ticker, and the duration of the block.
def pause(&block)
  seconds = nil
  longest, usual = gaps { seconds = Bench.wall(&block) }
  { pause: longest - usual, usual: usual, seconds: seconds }
end

# The measured ways. Dumps are written as on a signal.
WAYS = {
  "nothing, for two seconds" => ->(_path) { sleep(2) },
  "`fork { exit! }`" => ->(_path) { Process.wait(fork { exit! }) },
  "dump, `:memprof`" => ->(path) { Memprof.dump_all("#{path}.json", fork: true) },
  "the same, amid a sweep" => ->(path) { Memprof.dump_all("#{path}.json", fork: true) },
  "dump, `:binary`" => ->(path) { Memprof.dump_all("#{path}.memprof", fork: true) }
}.freeze
_, FORK, MEMPROF, AMID, BINARY = WAYS.keys
DUMPS = [MEMPROF, AMID, BINARY].freeze

# Leaves the heap as it is right after a GC, or as it usually is in a program that allocates constantly:
# marked, but not yet swept.
def collect(way)
  GC.disable
  (COUNT / 10).times { Object.new } if way == AMID
  GC.enable
  GC.start(immediate_sweep: way != AMID)
end

# The dumped process: fills its heap, and then runs the commands it reads, one per line.
def large_process(directory)
  kept = Heaps.program(COUNT)
  GC.start
  $stdout.sync = true
  puts(JSON.generate(rss: Bench.rss, objects: kept.size * Heaps::PER_RECORD))
  while (line = $stdin.gets)
    collect(way = line.chomp)
    result = pause { WAYS.fetch(way).call(File.join(directory, "heap")) }
    FileUtils.rm_f(Dir.glob(File.join(directory, "heap*")))
    puts(JSON.generate(result))
  end
  exit
end

large_process(ARGV.first) unless ARGV.empty?

# Private dirty bytes of a process's child while it exists, from /proc, at each look. Read by another process,
# so that the large one only waits.
def private_dirty_of_child(pid)
  child = Dir.glob("/proc/#{pid}/task/*/children").map { |file| File.read(file).to_i }.find(&:positive?)
  return unless child

  File.read("/proc/#{child}/smaps_rollup")[/^Private_Dirty:\s+(\d+)/, 1]&.to_i&.*(1024)
rescue SystemCallError
  nil # it has ended
end

# Sends the large process a command, and meanwhile reads the memory of its child, if requested.
def order(process, way, look: false)
  process.puts(way)
  looks = []
  until process.wait_readable(look ? LOOK : nil)
    dirty = private_dirty_of_child(process.pid)
    looks << dirty if dirty
  end
  answer = JSON.parse(process.gets || abort("the large process died"))
  look ? looks : answer
end

def milliseconds(seconds)
  format("%.1f", seconds * 1000)
end

def share(bytes, rss)
  format("%.2f %%", bytes * 100.0 / rss)
end

Bench.title("How long does a dump by a forked child pause the process, and what memory does the child take?")
facts, pauses, looks = Dir.mktmpdir("memprof-bench-") do |directory|
  library = File.expand_path("../lib", __dir__)
  IO.popen([RbConfig.ruby, "-I#{library}", __FILE__, directory], "r+") do |process|
    facts = JSON.parse(process.gets || abort("the large process died"))
    order(process, BINARY) # warms up
    pauses = Hash.new { |hash, way| hash[way] = [] }
    ROUNDS.times { WAYS.each_key { |way| pauses[way] << order(process, way) } }
    # In separate runs, because reading takes a lock that the child needs.
    looks = DUMPS.to_h { |way| [way, order(process, way, look: true)] }
    process.close_write
    [facts, pauses, looks]
  end
end

rss = facts.fetch("rss")
median = ->(way, key) { Bench::Sample.new(pauses[way].map { |run| run.fetch(key) }).median }
Bench.table(["#{facts["objects"]} objects, #{Bench.mebibytes(rss)} MiB; ms",
  "longest gap - usual", "of all rounds", "usual gap", "until it is done"],
  pauses.map do |way, runs|
    [way, milliseconds(median[way, "pause"]), milliseconds(runs.map { |run| run["pause"] }.max),
      milliseconds(median[way, "usual"]), milliseconds(median[way, "seconds"])]
  end)

added = looks.transform_values { |seen| [seen.first, seen.max, seen.max - seen.first] }
Bench.table(["private dirty memory of the child, MiB", "at first look", "at most", "added", "added / RSS"],
  added.map { |way, bytes| [way, *bytes.map { |number| Bench.mebibytes(number) }, share(bytes.last, rss)] })

worst = DUMPS.max_by { |way| median[way, "pause"] }
fork_alone = median[FORK, "pause"] * 1000
Bench.table(Bench::LIMITS, [
  Bench.limit("pause, aim is the fork alone", median[worst, "pause"] * 1000, 60, fork_alone, " ms"),
  Bench.limit("private dirty memory added / RSS", added.values.map(&:last).max * 100.0 / rss, 5, 1, " %")
])
