# frozen_string_literal: true

# How right are the shares that the agent gives the lines that allocate most?

require_relative "support"
require "memprof/agent/sampler"

SECONDS = Bench.size(600, 1)
LARGEST = 10

# A deterministic program: lines that allocate densely, rarely, below deep stacks, in long C calls, and in
# turn, in phases that last from milliseconds to seconds.
module Mix
  TEXT = JSON.generate(Array.new(2000) { |index| [index.to_s] })
  Row = Struct.new(:number)
  Item = Class.new
  # Phases of a round, by how often they come: most are short.
  ROUND = Bench.size([1, 5] * 20 + [30] * 5 + [150], [1, 5]).shuffle(random: Random.new(1)).freeze

  module_function

  def dense(count) = count.times { Object.new }
  def deep(level, count) = level.zero? ? count.times { Item.new } : deep(level - 1, count)
  def arrays(count) = count.times { [1, 2, 3, 4] }
  def strings(count) = count.times { +"short" }
  def parse(count) = count.times { JSON.parse(TEXT) }

  def rare(count, pause)
    count.times do
      index = 0
      index += 1 while index < pause
      Row.new(1)
    end
  end

  def in_turn(count)
    count.times do
      3.times { [nil] }
      deep(20, 1)
      rare(1, 20)
    end
  end

  def phase(factor)
    dense(factor * 2000)
    deep(50, factor * 1000)
    rare(factor * 500, 100)
    arrays(factor * 1500)
    parse(factor)
    strings(factor * 1000)
    in_turn(factor * 200)
  end

  def round = ROUND.each { |factor| phase(factor) }
end

# Sums by line and class.
def by_line(report, errors = nil)
  rows = Hash.new { |hash, key| hash[key] = [0, 0.0] }
  report.sites.each_with_index do |site, at|
    row = rows[[site.file, site.line, site.class_name]]
    row[0] += site.allocated_objects
    row[1] += errors[at][0]**2 if errors
  end
  rows
end

Bench.title("How right are the shares that the agent gives the lines that allocate most?")
exact = by_line(Memprof.report { Mix.round })
total = exact.values.sum(&:first).to_f
sampler = Memprof::Agent.const_get(:Sampler)
sampler.start
began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
Mix.round until Process.clock_gettime(Process::CLOCK_MONOTONIC) - began > SECONDS
report, facts = sampler.interval
sampler.stop
estimated = by_line(report, facts[:errors])
sum = report.total_allocated.to_f
lines = exact.sort_by { |_, (objects, _)| -objects }.first(LARGEST)
lines = lines.select { |_, (objects, _)| objects > total / 1000 }
rows = lines.map do |key, (objects, _)|
  share = objects / total
  found, variance = estimated[key]
  error = Math.sqrt(variance) / sum
  [key, share, found / sum, error, error.zero? ? Float::INFINITY : (found / sum - share) / error]
end
Bench.table(["line", "share", "estimated", "standard error", "standard errors off"],
  rows.map do |(file, line, name), share, found, error, off|
    percents = [share, found, error].map { |part| format("%.2f %%", part * 100) }
    ["#{File.basename(file)}:#{line} #{name}", *percents, format("%.1f", off)]
  end)
worst = rows.map { |row| row.last.abs }.max
Bench.table(Bench::LIMITS, [Bench.limit("standard errors that the worst share is off", worst, 3, 2)])
used = facts[:cost][:cpu] / facts[:duration] * 100
puts("#{facts[:samples]} samples; the sampler used #{format("%.2f", used)} % of a CPU.")
