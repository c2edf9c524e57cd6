# frozen_string_literal: true

# What does the agent's sampler cost a program that it always watches?

require_relative "support"
require_relative "support/server"
require "tmpdir"

REQUESTS = Bench.size(600, 5)
ROUNDS = Bench.size(15, 1)
# Rounds of requests to servers.
SERVED = Bench.size(30, 2)
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

# A puma that serves a Rails page.
class ShopServer < Server
  PAGE = "/orders?customer=Ada&rows=8"

  def initialize(directory, library)
    super(directory, "require #{SHOP.inspect}\nrun Shop\n", library, 2)
  end

  # The seconds that each request took, and the CPU seconds of the server.
  def measure(count)
    before = cpu
    latencies = connect { |http| Array.new(count) { Bench.wall { page(http) } } }
    [latencies, cpu - before]
  end

  private

  def page(http)
    http.get(PAGE).code == "200" || abort("puma does not serve the page:\n#{File.read(@log)}")
  end

  # Its threads are the same all the time.
  def cpu = Dir["/proc/#{@pid}/task/*/schedstat"].sum { |file| File.read(file).to_i } / 1e9
end

# Latencies and CPU seconds of servers that serve in turn, by what they have loaded.
def serve(libraries)
  directories = libraries.map { Dir.mktmpdir("memprof-bench-") }
  ENV["XDG_STATE_HOME"] = directories.first
  servers = libraries.zip(directories).map { |library, directory| ShopServer.new(directory, library) }
  servers.each { |server| server.measure(REQUESTS) }
  found = servers.map { [[], 0.0] }
  SERVED.times do |round|
    order = round.even? ? servers.each_index : servers.each_index.reverse_each
    order.each do |index|
      latencies, cpu = servers[index].measure(REQUESTS)
      found[index][0].concat(latencies)
      found[index][1] += cpu
    end
  end
  found
ensure
  servers&.each(&:stop)
  directories&.each { |directory| FileUtils.remove_entry(directory, true) }
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

served = serve(%w[memprof memprof memprof/agent])
late = served.map { |latencies, _| latencies.sort[(latencies.size * 0.99).floor] }
cpu, again, with = served.map(&:last)
rows << Bench.limit("Rails under puma: CPU with / without", with / cpu, 1.01, 1.003)
rows << Bench.limit("its 99th percentile with / without", late[2] / late[0], 1.02, 1.005)
Bench.table(Bench::LIMITS, rows)
puts(format("Two servers without the agent differ as %.3f in CPU, and as %.3f in the 99th percentile.",
  again / cpu, late[1] / late[0]))
