# frozen_string_literal: true

# What does the Rack middleware cost, per request of a Rails app?

require "stringio"
require_relative "support"
require "memprof/middleware"
require "memprof/tracer"

ENV["RAILS_ENV"] = "production"
begin
  require "logger" # Rails 6.1 and 7.0 forget it
  require "rails"
  require "action_controller/railtie"
  require "action_view/railtie"
  require "action_view/testing/resolvers"
rescue LoadError
  abort("#{File.basename(__FILE__)}: Rails is not installed; nothing is measured")
end

REQUESTS = Bench.size(300, 10)
ROUNDS = Bench.size(11, 2)

# A Rails app with one page: a table of orders in a layout, each with a link.
class Shop < Rails::Application
  config.load_defaults "#{Rails::VERSION::MAJOR}.#{Rails::VERSION::MINOR}"
  config.cache_classes = true
  config.eager_load = true
  config.secret_key_base = "0" * 64
  config.logger = Logger.new(IO::NULL, level: :info)
  config.hosts.clear if config.respond_to?(:hosts)
  routes.append { resources :orders, only: %i[index show] }
end

# Controllers are given the routes when they are defined.
Shop.initialize!

Order = Struct.new(:id, :customer, :cents) do
  def to_param
    id.to_s
  end
end

# The orders of a customer.
class OrdersController < ActionController::Base
  PAGE = <<~'ERB'
    <h1><%= params[:customer] %></h1>
    <table>
      <% @orders.each do |order| %>
        <tr><td><%= link_to "Order #{order.id}", order_path(order) %></td><td><%= number_to_currency(order.cents / 100.0) %></td></tr>
      <% end %>
    </table>
  ERB

  append_view_path(ActionView::FixtureResolver.new("orders/index.html.erb" => PAGE))

  def index
    rows = Integer(params[:rows])
    @orders = Array.new(rows) { |number| Order.new(number, params[:customer], number * 199) }
  end
end

# A place for reports that keeps nothing.
NOWHERE = Object.new
def NOWHERE.write(text)
  text.bytesize
end

ENVIRONMENT = {
  "REQUEST_METHOD" => "GET", "PATH_INFO" => "/orders", "QUERY_STRING" => "customer=Ada&rows=8",
  "SERVER_NAME" => "localhost", "SERVER_PORT" => "80", "HTTP_HOST" => "localhost",
  "rack.url_scheme" => "http", "rack.version" => [1, 3]
}.freeze

def request(app)
  env = ENVIRONMENT.merge("rack.input" => StringIO.new, "rack.errors" => $stderr)
  status, _headers, body = app.call(env)
  body.each(&:bytesize)
  body.close if body.respond_to?(:close)
  abort("the app answers #{status}") unless status == 200
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
