# frozen_string_literal: true

# What does `require "memprof"` cost a program that tracks nothing, alone and in a Rails process?

require_relative "support"

ROUNDS = Bench.size(15, 1)
LIBRARY = File.expand_path("../lib", __dir__)
# Requires memprof in a process that has not loaded it. Mapped pages of a library are shared by all processes
# that load it; the rest is the process's own.
PROGRAM = <<~'RUBY'
  memory = -> { File.read("/proc/self/smaps_rollup").scan(/^(?:Rss|Anonymous): +(\d+)/).map { |(kib)| kib.to_i * 1024 } }
  processor = -> { Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) }
  GC.start
  files, (resident, own) = $LOADED_FEATURES.size, memory.call
  objects, seconds = GC.stat(:total_allocated_objects), processor.call
  require "memprof"
  seconds, objects = processor.call - seconds, GC.stat(:total_allocated_objects) - objects
  files = $LOADED_FEATURES.size - files
  costs = memory.call.zip([resident, own]).map { |after, before| after - before }
  puts [seconds, objects, files, *costs].join(" ")
RUBY
RAILS = <<~RUBY
  require "logger" # Rails 6.1 and 7.0 forget it
  require "rails"
  require "action_controller/railtie"
  require "action_view/railtie"
RUBY

def measure(before)
  output, status = Open3.capture2(RbConfig.ruby, "-I#{LIBRARY}", "-e", before + PROGRAM)
  abort("require.rb: the program failed: #{status}") unless status.success?
  output.lines.last.split.map(&:to_f)
end

programs = { "Ruby alone" => "" }
begin
  require "rails"
  programs["Rails, not booted"] = RAILS
rescue LoadError
  puts("Rails is not installed; only Ruby alone is measured.", "")
end

samples = Bench.in_turn(ROUNDS, programs.transform_values { |before| -> { measure(before) } })
medians = samples.transform_values do |sample|
  sample.rounds.transpose.map { |figures| Bench::Sample.new(figures).median }
end

Bench.title("What does `require \"memprof\"` cost, alone and in a Rails process?")
rows = medians.map do |name, (seconds, objects, files, resident, own)|
  [name, format("%.1f", seconds * 1000), objects.round, files.round,
    Bench.mebibytes(resident), Bench.mebibytes(own)]
end
Bench.table(["", "CPU ms", "objects", "files", "RSS, MiB", "of it not shared, MiB"], rows)
limits = medians.flat_map do |name, (seconds, _, _, resident, _)|
  [Bench.limit("#{name}: CPU", seconds * 1000, 15, 15, " ms"),
    Bench.limit("#{name}: RSS", resident / 1_000_000, 1.5, 1.5, " MB")]
end
Bench.table(Bench::LIMITS, limits)
