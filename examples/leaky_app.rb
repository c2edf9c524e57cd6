# frozen_string_literal: true

# A small shop with a leak, as leaks are: a cache that looks right and never forgets. It serves over HTTP, is
# its own customer for a while, and ends. To see where its memory goes:
#
#   bin/demo
#   memprof run --no-internal examples/leaky_app.rb
#   ruby examples/leaky_app.rb 500                      # alone, with another number of requests
require "json"
require "net/http"
require "rack"
require "socket"

# What the shop sells. Made once: retained, and rightly so.
class Catalog
  Product = Struct.new(:sku, :name, :cents)
  WORDS = %w[brass copper felt glass linen oak paper slate steel wool].freeze

  def initialize
    @products = WORDS.product(%w[bowl lamp]).each_with_index.to_h do |(material, thing), number|
      ["p#{number}", Product.new("p#{number}", "#{material} #{thing}", 950 + (number * 125))]
    end
  end

  def [](sku)
    @products.fetch(sku)
  end

  def skus
    @products.keys
  end
end

# Prices for customers, each worked out once: that is the idea.
class PriceBook
  Quote = Struct.new(:product, :cents, :terms)
  TERMS = <<~TEXT
    Dear %<customer>s, this price is yours and includes a rebate of %<rebate>d %%. It holds for as
    long as you can see it. Delivery is free of charge within the city and takes two days, or three
    if one of them is a Sunday. Should a thing arrive broken, send us the larger half and we send
    you a new one. Should it arrive whole and not please, you have thirty days to tell us so; tell
    us why and you have sixty. Everything we sell is made by hand, so no two are quite the same, and
    the one that you get is not the one in the picture. Invoices come by letter. Payment is due when
    you are content. We keep your address for as long as it takes to find you, and give it to the
    postman.
  TEXT

  def initialize(catalog)
    @catalog = catalog
    @quotes = {}
  end

  # The mistake: the time is part of the key, so that no quote is ever found again, or dropped.
  def quote(customer, sku, moment: Time.now.to_f)
    product = @catalog[sku]
    rebate = customer.end_with?("7") ? 10 : 0
    cents = product.cents * (100 - rebate) / 100
    @quotes["#{customer}/#{sku}/#{moment}"] ||= Quote.new(product, cents, format(TERMS, customer:, rebate:))
  end

  def size
    @quotes.size
  end
end

# The last visitors, and no more than that: a cache as it should be.
class RecentVisitors
  LIMIT = 50

  def initialize
    @names = []
    @lock = Mutex.new
  end

  def <<(name)
    @lock.synchronize do
      @names << name.dup
      @names.shift if @names.size > LIMIT
    end
  end
end

# The Rack application: GET /quote?customer=c1&sku=p1
class Shop
  attr_reader :prices

  def initialize(catalog)
    @prices = PriceBook.new(catalog)
    @visitors = RecentVisitors.new
  end

  def call(env)
    query = Rack::Utils.parse_query(env["QUERY_STRING"])
    customer = query.fetch("customer")
    @visitors << customer
    quote = @prices.quote(customer, query.fetch("sku"))
    [200, { "content-type" => "application/json" }, [JSON.generate(page(quote))]]
  end

  private

  # Garbage after each request: allocated a lot, never retained.
  def page(quote)
    price = format("%.2f EUR", quote.cents / 100.0)
    { product: quote.product.name, price: price, terms: quote.terms }
  end
end

# Serves a Rack application on a free port while the block runs; by puma if it is there, else by webrick.
module Serving
  module_function

  def on_free_port(app, &block)
    require "puma"
    require "puma/server"
    with_puma(app, &block)
  rescue LoadError
    require "webrick"
    with_webrick(app, &block)
  end

  def with_puma(app)
    server = Puma::Server.new(app)
    server.add_tcp_listener("127.0.0.1", 0)
    server.run
    yield server.connected_ports.first
  ensure
    server&.stop(true)
  end

  def with_webrick(app)
    # WEBrick writes head and body apart: without this the system waits 40 ms between them.
    no_delay = ->(socket) { socket.setsockopt(Socket::IPPROTO_TCP, Socket::TCP_NODELAY, 1) }
    server = WEBrick::HTTPServer.new(BindAddress: "127.0.0.1", Port: 0, AcceptCallback: no_delay,
      AccessLog: [], Logger: WEBrick::Log.new(nil, WEBrick::Log::FATAL))
    server.mount_proc("/") do |request, response|
      response.status, headers, body = app.call(Rack::MockRequest.env_for(request.unparsed_uri))
      headers.each { |name, value| response[name] = value }
      body.each { |part| response.body += part }
    end
    thread = Thread.new { server.start }
    yield server.config[:Port]
  ensure
    server&.shutdown
    thread&.join
  end
end

requests = Integer(ARGV.fetch(0, 5_000))
catalog = Catalog.new
shop = Shop.new(catalog)
served = 0

Serving.on_free_port(shop) do |port|
  Net::HTTP.start("127.0.0.1", port) do |http|
    requests.times do |number|
      path = "/quote?customer=c#{number % 100}&sku=#{catalog.skus[number % catalog.skus.size]}"
      served += 1 if http.get(path).is_a?(Net::HTTPOK)
    end
  end
end

abort "only #{served} of #{requests} requests were served" unless served == requests
puts "#{served} requests of 100 customers for #{catalog.skus.size} products, #{shop.prices.size} quotes saved"
