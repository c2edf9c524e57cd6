# frozen_string_literal: true

# What does `memprof leaks PID` cost the server that it watches, in CPU time per request?

require "tmpdir"
require_relative "support"
require_relative "support/clients"
require_relative "support/server"

ROUNDS = Bench.size(3, 1)
SECONDS = Bench.size(60, 6)
WARM_UP = Bench.size(3, 0.5)
CLIENTS = 2
# Seconds between two requests of a client: the server is busy, and has some time left.
THINK = 0.0005
MEMPROF = File.expand_path("../exe/memprof", __dir__)
WAYS = { "not watched" => nil, "copies" => [], "--attach" => %w[--attach] }.freeze
# must, aim
LIMITS = { "copies" => [1.02, 1.01], "--attach" => [1.15, 1.05] }.freeze

# A server's CPU time, with that of its children, which write the copies.
def processor_seconds(pid)
  ticks = File.read("/proc/#{pid}/stat")[/\) (.*)/, 1].split.values_at(11, 12, 13, 14).sum(&:to_i)
  ticks / Etc.sysconf(Etc::SC_CLK_TCK).to_f
end

def watch(server, options)
  return sleep(SECONDS) unless options

  library = File.expand_path("../lib", __dir__)
  command = [RbConfig.ruby, "-I#{library}", MEMPROF, "leaks", server.pid.to_s, "--for", "#{SECONDS}s"] + options
  output, status = Open3.capture2e(*command)
  abort("#{command.join(" ")} failed:\n#{output}") unless status.success?
end

# Milliseconds of CPU per request, and the 99th percentile of the time of a request.
def cost(options)
  Dir.mktmpdir("memprof-bench-") do |directory|
    server = Server.new(directory, Server::ROWS_APP, "json", 4)
    Clients.during(server, CLIENTS, THINK) { sleep(WARM_UP) }
    before = processor_seconds(server.pid)
    clients = Clients.during(server, CLIENTS, THINK) { watch(server, options) }
    used = processor_seconds(server.pid) - before
    abort("the server was harmed: #{server.warnings}") unless server.alive? && clients.sum(&:errors).zero?

    latencies = clients.flat_map(&:latencies).sort
    [used / latencies.size * 1000, latencies[(latencies.size - 1) * 0.99] * 1000]
  ensure
    server&.stop
  end
end

begin
  File.read("/proc/self/stat")
rescue Errno::ENOENT
  abort("watched.rb: CPU time is read from /proc, which this system has not; nothing is measured")
end

runs = Hash.new { |hash, way| hash[way] = [] }
ROUNDS.times do |round|
  order = round.even? ? WAYS : WAYS.to_a.reverse
  order.each { |way, options| runs[way] << cost(options) }
end
medians = runs.transform_values { |costs| costs.transpose.map { |rounds| Bench::Sample.new(rounds) } }

Bench.title("What does `memprof leaks PID` cost the server that it watches, in CPU time per request?")
Bench.table(["for #{SECONDS} s", "CPU per request, ms", "spread", "99th percentile of a request, ms"],
  WAYS.keys.map do |way|
    used, latency = medians[way]
    [way, format("%.3f", used.median), used.spread, format("%.1f", latency.median)]
  end)
least = medians["not watched"].first.median
Bench.table(Bench::LIMITS, LIMITS.map do |way, (must, aim)|
  Bench.limit("#{way}: CPU / not watched", medians[way].first.median / least, must, aim)
end)
