# frozen_string_literal: true

# Does a server under load keep serving while it is copied again and again, without having loaded memprof?

require "tmpdir"
require_relative "support"
require_relative "support/clients"
require_relative "support/server"
require "memprof"
require "memprof/cli"

COPIES = Bench.size(1_000, 20)
# Copies for which all threads are stopped, so that their registers are known.
IN = 10
CLIENTS = 2
# Seconds between two requests of a client.
THINK = 0.002
WARM_UP = Bench.size(2, 0.5)
# Seconds after which a copy that does not answer counts as lost.
PATIENCE = 30

# Like `memprof stack`. Copies taken during a GC do not answer, and are repeated.
def stacks(pid)
  copy = Memprof::CLI::ProcessCopy.new(Memprof::CLI::Target.new(pid))
  threads = copy.ask({ do: "stack" }, seconds: PATIENCE).fetch("threads").size
  [copy.pause / copy.attempts, copy.attempts, threads.positive?]
end

# Like `memprof core PID`.
def memory(pid)
  Memprof::Core.of(pid) { |core| [core.pause, 1, core.regions(:stacks).size == core.overview[:threads]] }
end

def milliseconds(seconds) = format("%.1f", seconds * 1000)

def pauses(name, rows)
  sorted = rows.map(&:first).sort
  parts = [0.5, 0.99, 1].map { |part| milliseconds(sorted[(sorted.size - 1) * part]) }
  [name, rows.size, rows.sum { |row| row[1] }, rows.count { |row| !row[2] }, *parts]
end

Bench.title("Does a server under load keep serving while it is copied again and again, " \
            "having loaded nothing?")
Memprof::CLI.const_get(:Stack) # and what it needs
answers = Hash.new { |hash, name| hash[name] = [] }
states = {}
Dir.mktmpdir("memprof-bench-") do |directory|
  server = Server.new(directory, Server::ROWS_APP, "json", 4)
  before = Clients.during(server, CLIENTS, THINK) { sleep(WARM_UP) }
  states["before"] = server.resources
  during = Clients.during(server, CLIENTS, THINK) do
    COPIES.times do |number|
      if (number % IN).zero?
        answers["all threads stopped"] << memory(server.pid)
      else
        answers["one thread stopped"] << stacks(server.pid)
      end
    end
  end
  states["after #{COPIES} copies"] = server.resources
  Bench.table(["requests", "served", "errors", "median ms", "99th percentile", "longest"],
    [Clients.row("no copies", before), Clients.row("copies", during)])
  Bench.table(["the server", *states.values.first.keys], states.map { |name, state| [name, *state.values] })
  Bench.table(["copies", "answers", "copies made", "wrong", "pause, median ms", "99th percentile", "longest"],
    answers.map { |name, rows| pauses(name, rows) })
  server.warnings.uniq.first(5).each { |line| puts(line) }
  Bench.table(Bench::LIMITS, [
    Bench.limit("answers lost or wrong", COPIES - answers.values.flatten(1).count { |row| row[2] }, 0, 0),
    Bench.limit("requests failed", during.sum(&:errors), 0, 0),
    Bench.limit("longest request, ms", (during.flat_map(&:latencies).max * 1000).round, 1_000, 100),
    Bench.limit("children left", states.values.last["children"], 0, 0)
  ])
ensure
  server&.stop
end
