# frozen_string_literal: true

# What does `memprof leaks PID` cost the server that it watches, in CPU time?

require "tmpdir"
require_relative "support"
require_relative "support/clients"
require_relative "support/server"

ROUNDS = Bench.size(3, 1)
SECONDS = Bench.size(60, 2)
# Before and after: the same server, unwatched.
BESIDE = Bench.size(20, 1)
CLIENTS = 2
# Seconds between two requests of a client: the server is busy, but not saturated.
THINK = 0.0005
MEMPROF = File.expand_path("../exe/memprof", __dir__)
WAYS = { "copies" => [], "--attach" => %w[--attach] }.freeze
# must, aim
LIMITS = { "copies" => [2, 1], "--attach" => [15, 5] }.freeze

# The server, and its CPU seconds while it answers.
class WatchedServer < Server
  Cost = Struct.new(:requests, :own, :children) do
    def per_request = own / requests
  end

  def initialize(directory)
    super(directory, ROWS_APP, "json", 4)
  end

  # The cost of the requests during the block: the server's own seconds, and those of its children, which
  # write the copies.
  def cost(&block)
    before = seconds
    clients = Clients.during(self, CLIENTS, THINK, &block)
    own, children = seconds.zip(before).map { |now, then_| now - then_ }
    abort("the server was harmed: #{warnings}") unless alive? && clients.sum(&:errors).zero?

    Cost.new(clients.sum { |client| client.latencies.size }, own, children)
  end

  def watch(options)
    library = File.expand_path("../lib", __dir__)
    command = [RbConfig.ruby, "-I#{library}", MEMPROF, "leaks", pid.to_s, "--for", "#{SECONDS}s"] + options
    output, status = Open3.capture2e(*command)
    abort("#{command.join(" ")} failed:\n#{output}") unless status.success?
  end

  private

  def seconds
    ticks = File.read("/proc/#{pid}/stat")[/\) (.*)/, 1].split.map(&:to_f)
    [ticks[11] + ticks[12], ticks[13] + ticks[14]].map { |sum| sum / Etc.sysconf(Etc::SC_CLK_TCK) }
  end
end

# Percent of a CPU: what the server itself needs beyond the cost of the same requests before and after, and
# what the copies need.
def measure(options)
  Dir.mktmpdir("memprof-bench-") do |directory|
    server = WatchedServer.new(directory)
    server.cost { sleep(BESIDE) } # warms up
    before = server.cost { sleep(BESIDE) }
    watched = server.cost { server.watch(options) }
    after = server.cost { sleep(BESIDE) }
    alone = (before.own + after.own) / (before.requests + after.requests)
    more = (watched.per_request - alone) * watched.requests
    [more, watched.children, watched.own].map { |seconds| seconds / SECONDS * 100 }
  ensure
    server&.stop
  end
end

abort("watched.rb: this system has no /proc") unless File.exist?("/proc/self/stat")

runs = Hash.new { |hash, way| hash[way] = [] }
ROUNDS.times { WAYS.each { |way, options| runs[way] << measure(options) } }
medians = runs.transform_values { |costs| costs.transpose.map { |rounds| Bench::Sample.new(rounds).median } }

Bench.title("What does `memprof leaks PID` cost the server that it watches, in CPU time?")
Bench.table(["percent of a processor, for #{SECONDS} s", "server", "it needs more", "its copies need"],
  medians.map { |way, (more, copies, all)| [way, *[all, more, copies].map { |part| format("%.1f", part) }] })
Bench.table(Bench::LIMITS, LIMITS.map do |way, (must, aim)|
  Bench.limit("#{way}: both, percent of a processor", medians[way].first(2).sum, must, aim)
end)
