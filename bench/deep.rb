# frozen_string_literal: true

# What do call stacks cost in a Rails request, a hundred or more frames deep, compared with heaptrack?

require_relative "support"
require_relative "support/peers"
require "tmpdir"

REQUESTS = Bench.size(1_500, 5)
ROUNDS = Bench.size(7, 1)
LEVELS = 20
LIB = File.expand_path("../lib", __dir__)
SHOP = File.join(__dir__, "support/shop.rb")

# Answers requests in a separate process, which begins with this code: its CPU seconds for these, and its
# resident bytes at the end.
def requests(begin_with, *command)
  Dir.mktmpdir do |directory|
    answer = File.join(directory, "answer")
    environment = { "BEGIN_WITH" => begin_with, "ANSWER" => answer }
    command = command.map { |word| word.sub("SPILL", directory) }
    system(environment, *command, RbConfig.ruby, "-I#{LIB}", SHOP, REQUESTS.to_s, LEVELS.to_s,
      out: File::NULL, err: File::NULL) || abort("failed: #{begin_with}")
    File.read(answer).split.map(&:to_f)
  end
end

OBJECTS = "require 'memprof'; Memprof.start"
MALLOC = "require 'memprof/malloc'; Memprof::Malloc.start"

variants = {
  "not recorded" => -> { requests("") },
  "objects, one frame" => -> { requests(OBJECTS) },
  "objects, `stack: 64`" => -> { requests("#{OBJECTS}(stack: 64)") },
  "objects, `sample: 1000, stack: 64`" => -> { requests("#{OBJECTS}(sample: 1000, stack: 64)") },
  "malloc, one frame" => -> { requests(MALLOC) },
  "malloc, `stack: 64`" => -> { requests("#{MALLOC}(stack: 64)") },
  "malloc, `native: true`" => -> { requests("#{MALLOC}(stack: 64, native: true)") }
}
heaptrack = Peers.program("heaptrack")
if heaptrack
  variants["heaptrack, without what reads its pipe"] = -> { requests("", heaptrack, "--output", "SPILL/h") }
end

# One number of each answer, over runs that took turns.
Part = Struct.new(:numbers) do
  def median
    numbers.sort[numbers.size / 2]
  end
end

Bench.title("What do call stacks cost in a Rails request, a hundred frames deep and more?")
answers = variants.transform_values { [] }
ROUNDS.times { variants.each { |name, run| answers[name] << run.call } }
seconds, resident = [0, 1].map do |at|
  answers.transform_values { |list| Part.new(list.map { |answer| answer[at] }) }
end
plain = seconds["not recorded"].median
Bench.table(["#{REQUESTS} requests", "CPU seconds", "relative", "added RSS, MiB"],
  seconds.map do |name, part|
    added = resident[name].median - resident["not recorded"].median
    [name, format("%.3f", part.median), format("%.2f", part.median / plain), Bench.mebibytes(added)]
  end)
ratio = ->(name, base) { seconds[name].median / seconds[base].median }
rows = [
  Bench.limit("objects, 64 frames / one frame", ratio.("objects, `stack: 64`", "objects, one frame"), 1.25,
    1.1),
  Bench.limit("objects, sampled, 64 frames / not recorded",
    ratio.("objects, `sample: 1000, stack: 64`", "not recorded"), 1.03, 1.01),
  Bench.limit("malloc, 64 frames / not recorded", ratio.("malloc, `stack: 64`", "not recorded"), 1.35, 1.25),
  Bench.limit("malloc, native: added RSS",
    (resident["malloc, `native: true`"].median - resident["not recorded"].median) / (1 << 20), 60, 30, " MiB")
]
if heaptrack
  cost = ->(name) { seconds[name].median - plain }
  rows << Bench.limit("malloc, native / heaptrack",
    cost.("malloc, `native: true`") / cost.("heaptrack, without what reads its pipe"), 1, 0.5)
else
  puts "heaptrack is not installed."
end
Bench.table(Bench::LIMITS, rows)
