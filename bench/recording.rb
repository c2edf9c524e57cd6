# frozen_string_literal: true

# What does a recording of malloc to a file cost, with callers and with native frames, compared with one in
# memory and with heaptrack? What does a stack of 50 frames cost?

require_relative "support"
require_relative "support/peers"
require "tmpdir"

ROUNDS = Bench.size(9, 1)
STRINGS = Bench.size(1_000_000, 2_000)
CODE = "#{STRINGS}.times { |index| \"x\" * (100 + (index & 1023)) }"
DEEP = "def deep(levels, &block) = levels.zero? ? block.call : deep(levels - 1, &block)\n"

# Runs the storm in a separate process, and returns the CPU seconds of all its processes.
def run(*command, code)
  before = Process.times
  system(*command, RbConfig.ruby, "-I#{File.expand_path("../lib", __dir__)}", "-rmemprof/malloc", "-e", code,
    out: File::NULL, err: File::NULL) || abort("failed: #{command.join(" ")}")
  after = Process.times
  after.cutime + after.cstime - before.cutime - before.cstime
end

def heaptrack = Peers.program("heaptrack")

def record(file, options = "", code = CODE)
  run("#{DEEP}Memprof::Malloc.record(#{file.dump}#{options}) { #{code} }")
end

Bench.title("What does a recording of malloc cost that goes to a file?")
Dir.mktmpdir do |directory|
  file = File.join(directory, "app.malloc")
  variants = {
    "not recorded" => -> { run(CODE) },
    "in memory" => -> { run("Memprof::Malloc.start; #{CODE}") },
    "to a file, lines" => -> { record(file, ", stack: 1") },
    "to a file, with callers" => -> { record(file) },
    "to a file, with native frames" => -> { record(file, ", native: true") },
    "50 frames deep, not recorded" => -> { run("#{DEEP}deep(50) { #{CODE} }") },
    "50 frames deep, lines" => -> { record(file, ", stack: 1", "deep(50) { #{CODE} }") },
    "50 frames deep, with callers" => -> { record(file, "", "deep(50) { #{CODE} }") },
    "50 frames deep, with native frames" => -> { record(file, ", native: true", "deep(50) { #{CODE} }") }
  }
  variants["heaptrack"] = -> { run(heaptrack, "--output", "#{directory}/h", CODE) } if heaptrack
  samples = Bench.in_turn(ROUNDS, variants)
  plain = samples["not recorded"].median
  Bench.table(["#{STRINGS} strings, processor seconds of all processes", "median", "spread", "relative"],
    samples.map do |name, sample|
      [name, format("%.3f", sample.median), sample.spread, format("%.2f", sample.median / plain)]
    end)
  per_call = File.size(file) / Memprof::Malloc::Recording.new(file).to_h[:total][:allocations].to_f
  Bench.table(["bytes of the file", ""], [["for each call", format("%.2f", per_call)]])
  cost = ->(name, base) { samples[name].median - samples[base].median }
  woven = cost.("50 frames deep, with native frames", "50 frames deep, lines") / STRINGS
  rows = [Bench.limit("a woven stack of 50 frames", woven * 1e6, 3, 1, " us")]
  if heaptrack
    ratio = cost.("to a file, with native frames", "not recorded") / cost.("heaptrack", "not recorded")
    rows << Bench.limit("a malloc with native frames / heaptrack", ratio, 0.5, 0.25)
  else
    puts "heaptrack is not installed."
  end
  Bench.table(Bench::LIMITS, rows)
end
