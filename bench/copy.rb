# frozen_string_literal: true

# How long is a process that has not loaded memprof paused when it is dumped?

require "tmpdir"
require_relative "support"

# Number of strings in the process: about 100 MB, and 1.5 GB.
SIZES = [700_000, *(11_000_000 unless Bench::QUICK)].freeze
ROUNDS = Bench.size(7, 1)
# Maximum pause in milliseconds, by the number of strings.
MUST = { 700_000 => 10, 11_000_000 => 60 }.freeze
AIM = { 700_000 => 2, 11_000_000 => 30 }.freeze

# The process: it wakes every millisecond, and prints the longest interval between two wakeups for each line.
PROGRAM = <<~'RUBY'
  require "io/wait"
  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  kept = Array.new(Integer(ARGV[0])) { |number| "string number #{number} of a heap, on no slot alone".dup }
  GC.start
  $stdout.sync = true
  puts File.read("/proc/self/status")[/VmRSS:\s+(\d+)/, 1]
  longest = 0
  last = now
  loop do
    sleep 0.001
    longest = [longest, -last + (last = now)].max
    next unless $stdin.wait_readable(0)

    exit unless $stdin.gets
    puts longest
    longest = 0
    last = now
  end
RUBY

def memprof(*arguments)
  root = File.expand_path("..", __dir__)
  command = [RbConfig.ruby, "-I#{root}/lib", "#{root}/exe/memprof"]
  system(*command, *arguments.map(&:to_s), out: File::NULL, err: File::NULL) || abort("memprof failed")
end

def gdb(pid, *commands)
  system("gdb", "-q", "-batch", "-p", pid.to_s, *commands.flat_map { |one| ["-ex", one] },
    in: File::NULL, out: File::NULL, err: File::NULL)
end

WAYS = {
  "nothing, for a second" => ->(_, _) { sleep(1) },
  "`memprof stack`" => ->(pid, _) { memprof("stack", pid) },
  "`memprof dump --pid`" => ->(pid, path) { memprof("dump", "--pid", pid, "--out", "#{path}.memprof") },
  "gdb attaches and detaches" => ->(pid, _) { gdb(pid, "detach") },
  "gdb writes a core file" => ->(pid, path) { gdb(pid, "gcore #{path}.core") }
}.freeze
DUMP = WAYS.keys[2]
GDB = WAYS.keys[3]

def paused(process, way, directory)
  path = File.join(directory, "heap")
  process.puts
  process.gets
  way.call(process.pid, path)
  process.puts
  Float(process.gets || abort("the process died"))
ensure
  FileUtils.rm_f(Dir.glob("#{path}*"))
end

def measure(size, directory)
  IO.popen([RbConfig.ruby, "-e", PROGRAM, size.to_s], "r+") do |process|
    rss = Integer(process.gets) * 1024
    ways = system("gdb --version", out: File::NULL, err: File::NULL) ? WAYS : WAYS.first(3).to_h
    rounds = ways.transform_values { [] }
    ROUNDS.times { ways.each { |name, way| rounds[name] << paused(process, way, directory) } }
    process.close_write
    [rss, rounds.transform_values { |seconds| Bench::Sample.new(seconds) }]
  end
end

Bench.title("How long is a process paused that has not loaded memprof, when it is dumped?")
limits = []
Dir.mktmpdir("memprof-bench-") do |directory|
  SIZES.each do |size|
    rss, samples = measure(size, directory)
    ms = ->(seconds) { format("%.1f", seconds * 1000) }
    Bench.table(["#{Bench.mebibytes(rss)} MiB; longest time between wakings, ms", "median", "longest"],
      samples.map { |name, sample| [name, ms[sample.median], ms[sample.rounds.max]] })
    pause = samples.fetch(DUMP).median * 1000
    title = "pause of a dump at #{Bench.mebibytes(rss)} MiB"
    limits << Bench.limit(title, pause, MUST[size], AIM[size], " ms")
    next unless samples.key?(GDB)

    limits << Bench.limit("the same / gdb attaches", samples[DUMP].median / samples[GDB].median, 0.5, 0.1)
  end
end
Bench.table(Bench::LIMITS, limits)
