# frozen_string_literal: true

# How often does `memprof leaks` name the leak, and accuse a healthy program?

require "fileutils"
require_relative "support"
require_relative "support/verdict_runs"
require_relative "../spec/support/verdict_programs"

RUNS = ENV.fetch("BENCH_RUNS", Bench.size(5, 1)).to_i
# Programs per kind in a quick run.
SOME = 3
WAYS = VerdictRun::WAYS.keys
TOOLS = ["leaks", "new objects", "growing sites"].freeze

# Stores the texts of `memprof leaks` in BENCH_TEXTS, if set.
def run(program, way)
  VerdictRun.new(program, way).tap do |run|
    directory = ENV.fetch("BENCH_TEXTS", nil) or next
    FileUtils.mkdir_p(directory)
    File.write(File.join(directory, "#{program.name}-#{way}.txt"), run.text)
  end
end

# Both ways at once: time is not measured.
def both_ways(&block)
  WAYS.map { |way| Thread.new { block.call(way) } }.map(&:value)
end

def judge(program, run)
  missing = program.not_named(run.text)
  word = program.judge(run.text)
  word += ", no #{missing.join(", no ")}" if word == "partly"
  [word, *[run.new_objects, run.growing_sites].map { |site| judge_site(program, site) }]
end

# A site has neither holder nor mechanism, so the best result is the line: of the leaked objects, or of
# objects that these retain.
def judge_site(program, site)
  (program.all_lines & program.lines_in(site.to_s)).any? ? "line" : "wrong"
end

# Whether each tool accuses a healthy program.
def accusations(program, way)
  run = run(program, way)
  [program.judge(run.text) == "wrong", run.new_objects, run.growing_sites].map { |found| found ? 1 : 0 }
end

def columns(separator = ", ") = WAYS.product(TOOLS).map { |way, tool| "#{tool}#{separator}#{way}" }

def leaks(programs)
  rows = programs.map do |program|
    [program.name, *both_ways { |way| judge(program, run(program, way)) }.flatten]
  end
  Bench.table(["program that leaks", *columns], rows)
  sums = columns.each_with_index.map do |name, at|
    [name, *%w[right partly line wrong].map { |word| rows.count { |row| row[at + 1].start_with?(word) } }]
  end
  Bench.table(["of #{rows.size} programs that leak", "right", "partly", "the line alone", "wrong"], sums)
end

def healthy(programs)
  rows = programs.map do |program|
    sums = both_ways { |way| Array.new(RUNS) { accusations(program, way) }.transpose.map(&:sum) }
    [program.name, *sums.flatten]
  end
  rows << ["all of #{rows.size * RUNS} runs", *rows.transpose.drop(1).map(&:sum)]
  Bench.table(["healthy program, accused in #{RUNS} runs", *columns], rows)
end

programs, unable = VerdictProgram.all.partition { |program| program.missing.nil? }
only = ENV.fetch("BENCH_ONLY", nil)&.split(",")
programs.select! { |program| only.include?(program.name) } if only
kinds = programs.partition { |program| !program.nothing? }
kinds.map! { |kind| kind.first(SOME) } if Bench::QUICK

Bench.title("How often does `memprof leaks` name what leaks, and accuse what does not?")
leaks(kinds.first) if kinds.first.any?
healthy(kinds.last) if kinds.last.any?
unable.each { |program| puts("Not run: #{program.name}, as #{program.missing}.") }
