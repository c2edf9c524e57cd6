# frozen_string_literal: true

require "json"

# Clients that send requests to a server until they are stopped: response times, and wrong responses.
class Clients
  Result = Struct.new(:latencies, :errors)

  # Sends requests from so many clients during the block; returns the result of each. They run in a separate
  # process: memprof holds the GVL while it waits for a copy, which stops threads here, but not the server.
  def self.during(server, count, think)
    IO.popen("-", "r+") do |other|
      in_child(server, count, think) unless other
      yield
      other.close_write
      JSON.parse(other.read).map { |result| Result.new(*result) }
    end
  end

  def self.in_child(server, count, think)
    clients = Array.new(count) { new(server, think) }
    $stdin.read
    $stdout.write(JSON.generate(clients.map { |client| client.finish.to_a }))
    $stdout.flush
  ensure
    exit!
  end
  private_class_method :in_child

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
    Result.new(@latencies, @errors)
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
