# frozen_string_literal: true

# What does the Rack middleware cost, per request of a Rails app?

require_relative "support"
require "memprof/middleware"
require "memprof/tracer"
require_relative "support/shop"

REQUESTS = Bench.size(300, 10)
ROUNDS = Bench.size(11, 2)

# A destination for reports that stores nothing.
NOWHERE = Object.new
def NOWHERE.write(text)
  text.bytesize
end

def per_request(app)
  Bench.cpu { REQUESTS.times { request(app) } } / REQUESTS
end

tracked = -> do
  Memprof.start
  per_request(Shop)
ensure
  Memprof.stop
end

middleware = ->(**options) do
  app = Memprof::Middleware.new(Shop, io: NOWHERE, **options)
  -> { per_request(app) }
end

tracer = ->(**options) do
  app = Memprof::Tracer.new(Shop, path: File::NULL, **options)
  -> { per_request(app) }
end

Bench.title("What does the Rack middleware cost, per request of a Rails app?")
20.times { request(Shop) }
made = GC.stat(:total_allocated_objects)
request(Shop)
made = GC.stat(:total_allocated_objects) - made
variants = {
  "Rails #{Rails::VERSION::STRING} alone" => -> { per_request(Shop) },
  "`Memprof.start` before all of them" => tracked,
  "with the middleware" => middleware.call,
  "`limit: 20`" => middleware.call(limit: 20),
  "`sample: 100`" => middleware.call(sample: 100),
  "with `Memprof::Tracer`" => tracer.call,
  "with it and `lines: 5`" => tracer.call(lines: 5)
}
variants.each_value(&:call)
samples = Bench.in_turn(ROUNDS, variants)
base = samples.each_value.first
Bench.table(["microseconds per request of #{made} objects", "median", "spread", "/ Rails alone"],
  samples.map do |name, sample|
    [name, format("%.0f", sample.median * 1e6), sample.spread, format("%.2f", sample.median / base.median)]
  end)
limit = ->(what, name, *limits) { Bench.limit(what, samples.fetch(name).median / base.median, *limits) }
Bench.table(Bench::LIMITS, [
  limit.("a request with the middleware / without", "with the middleware", 1.35, 1.2),
  limit.("a request while all is tracked / without", "`Memprof.start` before all of them", 1.2, 1.1)
])
