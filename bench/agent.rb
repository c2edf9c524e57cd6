# frozen_string_literal: true

# What does the agent's sampler cost a program that it always watches? It is switched on and off in one
# process: two processes of the same program differ by more than it costs.

require_relative "support"
require_relative "support/server"
require "tmpdir"

REQUESTS = Bench.size(600, 5)
ROUNDS = Bench.size(31, 1)
# Processes whose memory is measured.
PROCESSES = Bench.size(5, 1)
# Rounds of requests to a server.
SERVED = Bench.size(100, 2)
LEVELS = 20
LIB = File.expand_path("../lib", __dir__)
SHOP = File.join(__dir__, "support/shop.rb")
LOAD = "require 'memprof'; require 'memprof/agent/sampler'; sampler = Memprof::Agent.const_get(:Sampler)"
NAMES = {
  objects: "loop of `Object.new`", json: "JSON, parsed and generated", rails: "Rails requests"
}.freeze

# Programs without a server, or a part of what they do.
module Programs
  module_function

  def objects(part) = Bench.objects((part * Bench.size(5_000_000, 50_000)).ceil)

  def json(part)
    text = JSON.generate(Array.new(200) { |index| { id: index, name: "item #{index}", tags: %w[a b c] } })
    (part * Bench.size(800, 10)).ceil.times { JSON.generate(JSON.parse(text)) }
  end

  def rails(part) = around(LEVELS) { (part * REQUESTS).ceil.times { request(Shop) } }

  # The stack depth of a server and its middleware.
  def around(levels, &block)
    levels.zero? ? block.call : around(levels - 1, &block)
  end
end

# Runs a program under the sampler, or alone. Starts and stops are outside of what is measured, and what the
# sampler learns at first, such as the names of methods.
def measured(name, sampler)
  sampler&.start
  Programs.public_send(name, 0.3)
  Bench.cpu { Programs.public_send(name, 1) }
ensure
  sampler&.stop
end

# The median of what a round with takes, compared with the same round without.
def compared(with, without)
  ratios = with.zip(without).map { |one, other| one / other }.sort
  ratios[ratios.size / 2]
end

# A puma that serves a Rails page, and starts and stops the sampler when asked.
class ShopServer < Server
  PAGE = "/orders?customer=Ada&rows=8"
  APP = <<~RUBY.freeze
    require #{SHOP.inspect}
    #{LOAD}
    switch = { "/start" => -> { sampler.start }, "/stop" => -> { sampler.stop } }
    run ->(env) do
      turn = switch[env["PATH_INFO"]] or next Shop.call(env)
      turn.call
      GC.start
      [200, {}, []]
    end
  RUBY

  def initialize(directory) = super(directory, APP, "memprof", 2)

  # The seconds that each request took, and the CPU seconds of the server.
  def measure(count, sampled)
    connect do |http|
      get(http, sampled ? "/start" : "/stop")
      count.times { get(http, PAGE) }
      before = cpu
      latencies = Array.new(count) { Bench.wall { get(http, PAGE) } }
      [latencies, cpu - before]
    end
  end

  private

  def get(http, path)
    http.get(path).code == "200" || abort("puma does not serve #{path}:\n#{File.read(@log)}")
  end

  # Its threads are the same while requests are measured.
  def cpu = Dir["/proc/#{@pid}/task/*/schedstat"].sum { |file| File.read(file).to_i } / 1e9
end

# Latencies and CPU seconds of each round of one server: alone, alone once more, and sampled.
def serve
  directory = Dir.mktmpdir("memprof-bench-")
  server = ShopServer.new(directory)
  server.measure(REQUESTS, false)
  turns = [false, false, true].each_with_index.to_a
  found = turns.map { [] }
  SERVED.times do |round|
    turns.rotate(round).each { |sampled, index| found[index] << server.measure(REQUESTS / 3, sampled) }
  end
  found
ensure
  server&.stop
  FileUtils.remove_entry(directory, true)
end

# Resident bytes of a process after requests.
def resident(begin_with)
  Dir.mktmpdir do |directory|
    answer = File.join(directory, "answer")
    environment = { "BEGIN_WITH" => begin_with, "ANSWER" => answer }
    system(environment, RbConfig.ruby, "-I#{LIB}", SHOP, REQUESTS.to_s, LEVELS.to_s,
      out: File::NULL, err: File::NULL) || abort("failed: #{begin_with}")
    File.read(answer).split.last.to_f
  end
end

Bench.title("What does the agent's sampler cost a program that it always watches?")
require "memprof"
require "memprof/agent/sampler"
sampler = Memprof::Agent.const_get(:Sampler)
rows = NAMES.map do |name, title|
  require SHOP if name == :rails
  times = Bench.in_turn(ROUNDS, alone: -> { measured(name, nil) }, sampled: -> { measured(name, sampler) })
  ratio = compared(*times.values_at(:sampled, :alone).map(&:rounds))
  Bench.limit("#{title}: CPU with / without", ratio, *(name == :rails ? [1.01, 1.003] : [1.02, 1.005]))
end

loaded, started = [LOAD, "#{LOAD}; sampler.start"].map do |code|
  Array.new(PROCESSES) { resident(code) }.sort[PROCESSES / 2]
end
rows << Bench.limit("RSS beyond that of memprof loaded", (started - loaded) / (1 << 20), 8, 3, " MiB")

alone, again, with = serve
late, late_again, late_with = [alone, again, with].map do |rounds|
  latencies = rounds.flat_map(&:first).sort
  latencies[(latencies.size * 0.99).floor]
end
cpu = ->(rounds) { rounds.map(&:last) }
rows << Bench.limit("Rails under puma: CPU with / without", compared(cpu.(with), cpu.(alone)), 1.01, 1.003)
rows << Bench.limit("its 99th percentile with / without", late_with / late, 1.02, 1.005)
Bench.table(Bench::LIMITS, rows)
puts(format("Twice without it, the server differs as %.3f in CPU, and as %.3f in the 99th percentile.",
  compared(cpu.(again), cpu.(alone)), late_again / late))
