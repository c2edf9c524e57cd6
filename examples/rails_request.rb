# frozen_string_literal: true

# What do requests of a Rails app allocate, and what of that stays? A shop in one file, asked by itself; the
# report is of later requests, when all files are loaded and the caches that should be full are.
#
#   ruby examples/rails_request.rb                     # 100 requests, as text
#   ruby examples/rails_request.rb markdown 1          # one, in another format
ENV["RAILS_ENV"] ||= "production"
begin
  require "logger" # Rails 6.1 and 7.0 forget it
  require "rails"
  require "action_controller/railtie"
  require "action_view/railtie"
  require "action_view/testing/resolvers"
rescue LoadError
  puts "This example needs Rails: apt-get install ruby-railties, or gem install railties"
  exit
end
require "memprof"
# Now, and not with the first report: in Ruby 3.1 each new constant empties the caches of all constants.
require "memprof/report"
require "rack/mock"

# The whole application.
class Shop < Rails::Application
  config.load_defaults "#{Rails::VERSION::MAJOR}.#{Rails::VERSION::MINOR}"
  config.cache_classes = true
  config.eager_load = false
  config.secret_key_base = "0" * 64
  config.logger = Logger.new(IO::NULL)
  routes.append { get "/orders", to: "orders#index" }
end

# What was ordered.
Order = Struct.new(:number, :article, :cents) do
  def price
    format("%.2f EUR", cents / 100.0)
  end
end

# Orders, and the leak: each page stores who looked at it, and nothing reads or removes that.
class OrdersController < ActionController::Base
  ORDERS = Array.new(20) { |number| Order.new(number, "lamp no. #{number}", 1995 + number) }
  VISITS = []

  PAGE = <<~ERB
    <h1>Orders</h1>
    <ul>
      <% @orders.each do |order| %>
        <li><%= order.article %>: <%= order.price %></li>
      <% end %>
    </ul>
  ERB
  prepend_view_path ActionView::FixtureResolver.new("orders/index.html.erb" => PAGE)

  def index
    VISITS << "#{request.remote_ip} #{request.user_agent}"
    @orders = ORDERS
  end
end

Shop.initialize!

format, requests = ARGV
requests = Integer(requests || 100)
client = Rack::MockRequest.new(Shop)
visit = -> do
  response = client.get("/orders", "HTTP_USER_AGENT" => "Example/1.0")
  abort "#{response.status}: #{response.body[0, 500]}" unless response.ok?
end

10.times { visit.call }
report = Memprof.report { requests.times { visit.call } }
report.write($stdout, format: format || :text, limit: 12)
