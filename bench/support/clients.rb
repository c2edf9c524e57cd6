# frozen_string_literal: true

# Clients that send requests to a server until they are stopped: how long responses took, and how many were
# wrong.
class Clients
  attr_reader :latencies, :errors

  # Sends requests from so many clients during the block; returns the clients.
  def self.during(server, count, think)
    clients = Array.new(count) { new(server, think) }
    yield
    clients.each(&:finish)
  end

  # For a table: requests, errors, and milliseconds at the median, the 99th percentile, and the longest.
  def self.row(name, clients)
    all = clients.flat_map(&:latencies).sort
    shown = [0.5, 0.99, 1].map { |part| format("%.1f", all[(all.size - 1) * part] * 1000) }
    [name, all.size, clients.sum(&:errors), *shown]
  end

  # @param think [Float] seconds between two requests
  def initialize(server, think)
    @think = think
    @latencies = []
    @errors = 0
    @thread = Thread.new { ask(server) until @stop }
  end

  def finish
    @stop = true
    @thread.join
    self
  end

  private

  def ask(server)
    server.connect do |http|
      until @stop
        @latencies << Bench.wall { @errors += 1 unless whole?(http.get("/rows")) }
        sleep(@think)
      end
    end
  rescue SystemCallError, IOError, Timeout::Error
    @errors += 1
  end

  def whole?(response)
    response.code == "200" && response.body.end_with?("}]")
  end
end
