# frozen_string_literal: true

# What does the Rack middleware cost, per request?

require "json"
require "stringio"
require_relative "support"
require "memprof/middleware"

REQUESTS = Bench.size(500, 20)
ROUNDS = Bench.size(15, 2)

# A small typical app: reads parameters, builds rows from them, responds with JSON.
APP = ->(env) do
  parameters = env["QUERY_STRING"].split("&").to_h { |pair| pair.split("=") }
  rows = Array.new(parameters.fetch("rows").to_i) do |index|
    { "id" => index, "name" => "row #{index}", "tags" => ["a", "b"] }
  end
  body = JSON.generate(rows)
  [200, { "content-type" => "application/json", "content-length" => body.bytesize.to_s }, [body]]
end

# A destination for reports that stores nothing.
NOWHERE = Object.new
def NOWHERE.write(text)
  text.bytesize
end

def request(app)
  env = { "REQUEST_METHOD" => "GET", "PATH_INFO" => "/rows", "QUERY_STRING" => "rows=100&page=2" }
  _status, _headers, body = app.call(env)
  body.each(&:bytesize)
  body.close if body.respond_to?(:close)
end

def per_request(app)
  Bench.cpu { REQUESTS.times { request(app) } } / REQUESTS
end

apps = {
  "the app alone" => APP,
  "with the middleware" => Memprof::Middleware.new(APP, io: NOWHERE),
  "`limit: 20`" => Memprof::Middleware.new(APP, io: NOWHERE, limit: 20),
  "`sample: 100`" => Memprof::Middleware.new(APP, io: NOWHERE, sample: 100),
  "`only:` says no" => Memprof::Middleware.new(APP, io: NOWHERE, only: ->(_env) { false })
}
Bench.title("What does the Rack middleware cost, per request?")
made = GC.stat(:total_allocated_objects)
request(APP)
made = GC.stat(:total_allocated_objects) - made
samples = Bench.in_turn(ROUNDS, apps.transform_values { |app| -> { per_request(app) } })
base = samples.fetch("the app alone").median
Bench.table(["microseconds per request of #{made} objects", "median", "spread", "/ the app alone"],
  samples.map do |name, sample|
    [name, format("%.1f", sample.median * 1e6), sample.spread,
      format("%.2f", sample.median / base)]
  end)
