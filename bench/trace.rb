# frozen_string_literal: true

# What does a trace cost: counted calls, uncounted calls, a request?

require "json"
require "tmpdir"
require_relative "support"
require_relative "support/server"
require "memprof/tracer"

ROUNDS = Bench.size(21, 2)
CALLS = Bench.size(20_000, 200)
STRINGS = Bench.size(100_000, 1000)
REQUESTS = Bench.size(40, 2)
# Requests per turn of puma's client: in long series, one kind may encounter a busier machine than the other.
IN_TURN = Bench.size(5, 1)

# Bytes through a pipe, one by one: the cheapest system calls.
def bytes(reader, writer)
  CALLS.times do
    writer.syswrite("x")
    reader.sysread(1)
  end
end

# Strings that need malloc.
def strings
  STRINGS.times { "x" * 100 }
end

# A request that only computes.
COMPUTING = ->(_env) do
  rows = Array.new(450) { |index| { "id" => index, "name" => "row #{index}", "tags" => ["a", "b"] } }
  [200, { "content-type" => "application/json" }, [JSON.generate(JSON.parse(JSON.generate(rows)))]]
end

# A request in puma that waits four times, as for a database, and builds a page: 5 ms for the client.
PUMA = <<~'RUBY'
  require "json"
  app = ->(_env) do
    rows = Array.new(4) do |query|
      sleep(0.001)
      Array.new(10) { |id| { "id" => id, "name" => "row #{id} of #{query}", "tags" => ["a", "b"] } }
    end
    body = JSON.generate(rows)
    [200, { "content-type" => "application/json", "content-length" => body.bytesize.to_s }, [body]]
  end
  taken = ->(_env) { [200, {}, [Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID).to_s]] }
  map("/cpu") { run taken }
  map("/plain") { run app }
  map("/traced") { use Memprof::Tracer; run app }
RUBY

def per_request(app)
  env = { "REQUEST_METHOD" => "GET", "PATH_INFO" => "/rows", "QUERY_STRING" => "a=b" }
  Bench.wall { REQUESTS.times { app.call(env) } } / REQUESTS
end

# One variant's time relative to another's, by rounds in turn.
def compared(base, other, rounds = ROUNDS)
  samples = Bench.in_turn(rounds, { base: base, other: other })
  base, other = samples.values_at(:base, :other)
  [base.median, other.median, other.median / base.median, base.spread, other.spread]
end

def row(name, unit, each, compared)
  scale = { "ns" => 1e9, "ms" => 1e3 }.fetch(unit)
  base, other, ratio, *spreads = compared
  [name, *[base, other].map { |seconds| format("%.1f #{unit}", seconds / each * scale) },
    format("%.3f", ratio), *spreads]
end

def traced(tracer, &block)
  -> { Memprof.trace(File::NULL, tracers: tracer) { Bench.cpu(&block) } }
end

# The pipe in a process that has never traced, or has stopped tracing.
unless ARGV.empty?
  reader, writer = IO.pipe
  Memprof.trace(File::NULL) { bytes(reader, writer) } if ARGV == ["ended"]
  Bench.answer(Bench.in_turn(ROUNDS, { pipe: -> { Bench.cpu { bytes(reader, writer) } } })[:pipe].median)
end

def found
  reader, writer = IO.pipe
  pipe = -> { Bench.cpu { bytes(reader, writer) } }
  {
    idle: compared(-> { Bench.child("never") }, -> { Bench.child("ended") }, Bench.size(7, 1)),
    pipe: compared(pipe, traced(:fd) { bytes(reader, writer) }),
    malloc: compared(-> { Bench.cpu { strings } }, traced(:memory) { strings }),
    **Dir.mktmpdir("memprof-bench-") { |directory| { **served(directory), **requests(directory) } }
  }
end

# The latency for a client of puma, at a path whose requests are untraced and at one whose requests are
# traced; and puma's CPU time per request, including work after the reply.
def served(directory)
  server = Server.new(directory, PUMA, "memprof/tracer", 1)
  server.connect do |http|
    asked = ->(path) { Bench::Sample.new(Array.new(IN_TURN) { wait(http, path) }).median }
    worked = ->(path) do
      before = answer(http, "/cpu").to_f
      REQUESTS.times { answer(http, path) }
      (answer(http, "/cpu").to_f - before) / REQUESTS
    end
    %w[/plain /traced].each(&asked) # warms up
    apart(server.pid)
    measures = { puma: [asked, ROUNDS * REQUESTS / IN_TURN], puma_cpu: [worked, ROUNDS] }
    measures.transform_values do |measure, rounds|
      compared(-> { measure.call("/plain") }, -> { measure.call("/traced") }, rounds)
    end
  end
ensure
  server&.stop
  pin(Process.pid, "0-#{Etc.nprocessors - 1}")
end

# Clients of a server run on other machines. On the same CPU, a client gets the reply only when the server has
# finished all work, including that after the reply.
def apart(pid)
  return if Etc.nprocessors > 1 && pin(pid, "0") && pin(Process.pid, "1-#{Etc.nprocessors - 1}")

  warn("puma and its client share a processor: its client waits for what is done behind the reply, too")
end

def pin(pid, processors)
  system("taskset", "--all-tasks", "--cpu-list", "--pid", processors, pid.to_s, out: File::NULL)
end

# Seconds until a client has its reply; it sends no request while puma may still be working on the last one.
def wait(http, path)
  sleep(0.001)
  Bench.wall { answer(http, path) }
end

def answer(http, path)
  response = http.get(path)
  abort("puma answers #{response.code}: #{response.body}") unless response.code == "200"
  response.body
end

# Without these the VM calls no hook on object allocation, which costs more than the hook itself.
ALLOCATIONS = %i[objects threads].freeze

def requests(directory)
  others = Memprof::Tracers.names - ALLOCATIONS
  ways = { computing: nil, unborn: others }
  ways.transform_values do |tracers|
    tracer = Memprof::Tracer.new(COMPUTING, path: File.join(directory, "trace.json"), tracers: tracers)
    compared(-> { per_request(COMPUTING) }, -> { per_request(tracer) })
  end
end

Bench.title("What does a trace cost: counted calls, uncounted calls, a request?")
all = found
Bench.table(["each", "plain", "traced", "ratio", "spread", "spread, traced"], [
  row("a byte written to a pipe and read, `fd`", "ns", CALLS, all[:pipe]),
  row("the same, the trace has ended", "ns", CALLS, all[:idle]),
  row("a string of 100 bytes, `memory`", "ns", STRINGS, all[:malloc]),
  row("a request of puma's client, all tracers", "ms", 1, all[:puma]),
  row("the same, processor time of puma", "ms", 1, all[:puma_cpu]),
  row("a request that only computes, all tracers", "ms", 1, all[:computing]),
  row("the same, without `objects` and `threads`", "ms", 1, all[:unborn])
])
Bench.table(Bench::LIMITS, [
  Bench.limit("a byte through a pipe, traced / plain", all[:pipe][2], 1.25, 1.1),
  Bench.limit("the same after the trace / before any", all[:idle][2], 1.05, 1.0),
  Bench.limit("a string, traced / plain", all[:malloc][2], 1.3, 1.15),
  Bench.limit("a request of puma's client, traced / plain", all[:puma][2], 1.03, 1.01)
])
