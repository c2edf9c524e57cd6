# frozen_string_literal: true

# What does the agent's sampler cost a program that it always watches?

require_relative "support"
require "tmpdir"

REQUESTS = Bench.size(600, 5)
ROUNDS = Bench.size(15, 1)
LEVELS = 20
LIB = File.expand_path("../lib", __dir__)
SHOP = File.join(__dir__, "support/shop.rb")
START = "require 'memprof'; require 'memprof/agent/sampler'; Memprof::Agent.const_get(:Sampler).start"
NAMES = { objects: "loop of `Object.new`", json: "JSON, parsed and generated" }.freeze

# Programs without requests.
module Programs
  module_function

  def objects = Bench.objects(Bench.size(5_000_000, 50_000))

  def json
    text = JSON.generate(Array.new(200) { |index| { id: index, name: "item #{index}", tags: %w[a b c] } })
    Bench.size(800, 10).times { JSON.generate(JSON.parse(text)) }
  end
end

# Runs a program under the sampler, or alone, with all starts and stops outside of what is measured.
def measured(name, sampler)
  sampler&.start
  Bench.cpu { Programs.public_send(name) }
ensure
  sampler&.stop
end

# Answers requests in a separate process: its CPU seconds, and its resident bytes at the end.
def requests(begin_with)
  Dir.mktmpdir do |directory|
    answer = File.join(directory, "answer")
    environment = { "BEGIN_WITH" => begin_with, "ANSWER" => answer }
    system(environment, RbConfig.ruby, "-I#{LIB}", SHOP, REQUESTS.to_s, LEVELS.to_s,
      out: File::NULL, err: File::NULL) || abort("failed: #{begin_with}")
    File.read(answer).split.map(&:to_f)
  end
end

Bench.title("What does the agent's sampler cost a program that it always watches?")
require "memprof"
require "memprof/agent/sampler"
sampler = Memprof::Agent.const_get(:Sampler)
rows = NAMES.map do |name, title|
  times = Bench.in_turn(ROUNDS, alone: -> { measured(name, nil) }, sampled: -> { measured(name, sampler) })
  ratios = times[:sampled].rounds.zip(times[:alone].rounds).map { |with, without| with / without }.sort
  Bench.limit("#{title}: CPU with / without", ratios[ratios.size / 2], 1.02, 1.005)
end

answers = { "" => [], "require 'memprof'" => [], START => [] }
ROUNDS.times { answers.each { |begin_with, list| list << requests(begin_with) } }
median = ->(numbers) { numbers.sort[numbers.size / 2] }
ratios = answers[START].zip(answers[""]).map { |(with, _), (without, _)| with / without }
rows << Bench.limit("Rails requests: CPU with / without", median.(ratios), 1.01, 1.003)
resident = answers.transform_values { |list| median.(list.map(&:last)) }
rows << Bench.limit("RSS beyond that of memprof loaded",
  (resident[START] - resident["require 'memprof'"]) / (1 << 20), 8, 3, " MiB")
Bench.table(Bench::LIMITS, rows)
