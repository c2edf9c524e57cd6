# frozen_string_literal: true

# A Rails app with one page, and requests to it. Run as a program, it answers a number of requests.

require "stringio"

ENV["RAILS_ENV"] = "production"
begin
  require "logger" # Rails 6.1 and 7.0 forget it
  require "rails"
  require "action_controller/railtie"
  require "action_view/railtie"
  require "action_view/testing/resolvers"
rescue LoadError
  abort("Rails is not installed; nothing is measured")
end

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

# Controllers get the routes when they are defined.
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

if $PROGRAM_NAME == __FILE__
  # Adds the stack depth of a server and its middleware, as in production.
  def around(levels, &block)
    levels.zero? ? block.call : around(levels - 1, &block)
  end

  app = Shop
  around(Integer(ARGV.fetch(1, 0))) do
    20.times { request(app) }
    eval(ENV["BEGIN_WITH"].to_s) # rubocop:disable Security/Eval
    before = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
    Integer(ARGV.fetch(0)).times { request(app) }
    used = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) - before
    rss = File.read("/proc/self/statm").split[1].to_i * 4096
    File.write(ENV["ANSWER"], "#{used} #{rss}") if ENV["ANSWER"]
  end
end
