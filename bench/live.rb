# frozen_string_literal: true

# Does a server under load write dump after dump, lose none, and keep serving?

require "tmpdir"
require_relative "support"
require_relative "support/clients"
require_relative "support/server"

DUMPS = Bench.size(1_000, 20)
CLIENTS = 2
# Seconds between two requests of a client: the child that writes has a low priority, and would starve if
# clients and server together used all processors.
THINK = 0.002
# Seconds after which no more dumps are requested, on a slow machine.
LONGEST = 480
WARM_UP = Bench.size(2, 0.5)
# Seconds after which a dump counts as lost.
PATIENCE = 30
FOOTER = /\A{"_id":"footer","type":"footer","objects":\d+.*}\n\z/

# A puma that has loaded memprof/signal.
class DumpedServer < Server
  def initialize(directory)
    super(directory, ROWS_APP, "memprof/signal", 4)
  end

  # Sends the signal and waits for the file.
  #
  # @return [Symbol] `:whole`, `:cut`, or `:lost` if none appeared in time
  def dump
    deadline = now + PATIENCE
    Process.kill(:URG, @pid)
    path = nil
    sleep(0.002) until (path = Dir.glob("#{@directory}/memprof-*.json").first) || now > deadline
    return :lost unless path

    File.open(path) do |file|
      file.seek([file.size - 1024, 0].max)
      FOOTER.match?(file.readlines.last.to_s) ? :whole : :cut
    end
  ensure
    File.delete(path) if path
  end

  private

  def now
    Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end
end

def milliseconds(seconds)
  format("%.1f", seconds * 1000)
end

Bench.title("Does a server under load write one dump after the other, lose none, and keep serving?")
outcomes = []
times = []
states = {}
Dir.mktmpdir("memprof-bench-") do |directory|
  server = DumpedServer.new(directory)
  before = Clients.during(server, CLIENTS, THINK) { sleep(WARM_UP) }
  states["before"] = server.resources
  during = Clients.during(server, CLIENTS, THINK) do
    DUMPS.times do |number|
      states["after #{number} dumps"] = server.resources if number == DUMPS / 2
      times << Bench.wall { outcomes << (server.alive? ? server.dump : :dead) }
      break if outcomes.last == :dead || times.sum > LONGEST
    end
  end
  sleep(0.5)
  states["after #{outcomes.size} dumps"] = server.resources if server.alive?
  Bench.table(["requests", "served", "errors", "median ms", "99th percentile", "longest"],
    [Clients.row("no dumps", before), Clients.row("dumps", during)])
  Bench.table(["the server", *states.values.first.keys], states.map { |name, state| [name, *state.values] })
  sample = Bench::Sample.new(times)
  Bench.table(["dumps", "whole", "cut", "lost", "median ms", "longest", "warnings of the server"],
    [[outcomes.size, *%i[whole cut lost].map { |way| outcomes.count(way) }, milliseconds(sample.median),
      milliseconds(times.max), server.warnings.size]])
  server.warnings.uniq.first(5).each { |line| puts(line) }
  errors = during.sum(&:errors)
  Bench.table(Bench::LIMITS, [
    Bench.limit("dumps lost or cut", outcomes.size - outcomes.count(:whole), 0, 0),
    Bench.limit("requests failed", errors, 0, 0)
  ])
ensure
  server&.stop
end
