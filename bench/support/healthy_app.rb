# frozen_string_literal: true

# An app without a leak, with all that resembles one: caches that fill over hours, sessions that expire, a
# queue that fills by day and drains by night, buffers that are flushed, tables filled on first use. Run as a
# program, it records which objects are alive every five minutes of its own, compressed, time: with
# ObjectSpace, not with memprof. Each five minutes have a full GC, as in an app that allocates hundreds of
# megabytes in them.
#
#     ruby bench/support/healthy_app.rb FILE SEED START_HOUR HOURS

require "erb"
require "json"
require_relative "recording"

# Requests, and the parts of the app that retain objects.
class HealthyApp
  PAGE = ERB.new(<<~HTML)
    <h1><%= customer %></h1>
    <% orders.each do |order| %>
      <tr><td>Order <%= order["id"] %></td><td><%= format("$%.2f", order["cents"] / 100.0) %></td></tr>
    <% end %>
  HTML
  PER_HOUR = 12
  Session = Struct.new(:id, :user, :items, :until)
  Cart = Struct.new(:id, :lines, :until)
  Job = Struct.new(:id, :arguments, :enqueued_at)
  Connection = Struct.new(:number, :buffer, :statements)
  Fragment = Struct.new(:html, :until)

  # Requests per step by hour of the day: a night, a morning that rises, two peaks.
  LOAD = [3, 2, 2, 2, 2, 4, 8, 14, 20, 26, 30, 30, 26, 26, 28, 28, 26, 24, 22, 24, 22, 16, 9, 5].freeze
  # Jobs that can be done in a step: less than arrive by day, more than by night.
  JOBS = 20

  def initialize(random, hour)
    @random = random
    @start = hour * PER_HOUR
    @step = 0
    @lru = {}
    @sessions = {}
    @carts = {}
    @fragments = {}
    @queue = []
    @pool = []
    @log = []
    @minutes = []
    @memo = {}
    @strings = {}
    @rates = {}
    @features = {}
  end

  # Five minutes.
  def step
    now = @start + @step
    hour = now % (24 * PER_HOUR) / PER_HOUR.to_f
    expected = LOAD[hour.floor] + (hour % 1) * (LOAD[(hour.floor + 1) % 24] - LOAD[hour.floor])
    count = (expected * (0.75 + @random.rand * 0.5)).round
    count.times { visit(now) }
    background(now)
    @step += 1
    count
  end

  private

  # Some keys are wanted far more often than others.
  def popular(number) = (number**@random.rand).to_i

  def visit(now)
    page("customer #{@random.rand(3000)}")
    product(popular(20_000))
    session(now)
    cart(now) if @random.rand < 0.15
    fragment(popular(400), now)
    @random.rand(3).times do
      @queue << Job.new(@random.rand(1 << 40), { "order" => "o" * 60, "at" => now }, now)
    end
    label("customer-#{popular(3000)}")
    settings(popular(600))
    connection
    @log << "GET /orders #{@random.rand(1 << 30)} 200 in #{@random.rand(90)} ms"
    @log.clear if @log.size > 800
    feature(popular(120))
  end

  # Garbage.
  def page(customer)
    rows = Array.new(20) { |id| { "id" => id, "customer" => customer, "cents" => @random.rand(100_000) } }
    orders = JSON.parse(JSON.generate(rows))
    PAGE.result_with_hash(customer: customer, orders: orders)
  end

  def product(id)
    @lru[id] = @lru.delete(id) || { id: id, name: "Product #{id}", text: "x" * 200 }
    @lru.shift if @lru.size > 700
  end

  def session(now)
    id = @random.rand < 0.35 ? @random.bytes(8) : @sessions.keys.sample(random: @random)
    found = @sessions[id] ||= Session.new(id, "user-#{@random.rand(9999)}", Array.new(4) { +"item" }, 0)
    found.until = now + PER_HOUR / 2
  end

  def cart(now)
    id = @random.rand(1 << 40)
    @carts[id] = Cart.new(id, Array.new(5) { { sku: +"sku", count: 1 } }, now + 2 * PER_HOUR)
  end

  def fragment(key, now)
    found = @fragments[key]
    return if found && found.until > now

    @fragments[key] = Fragment.new("<li>#{key}</li>" * 20, now + PER_HOUR + @random.rand(PER_HOUR))
  end

  def label(text) = @strings[text] ||= text.dup

  def settings(key)
    @memo[key] ||= { "key" => key.to_s, "values" => Array.new(6) { |index| "value #{index}" } }
  end

  def connection
    return if @pool.size >= 16 || @random.rand > 0.01

    @pool << Connection.new(@pool.size, "\0" * 8192, Array.new(20) { |number| "SELECT #{number}" })
  end

  # Code that is loaded when it is first used.
  def feature(number)
    @features[number] ||= Class.new { 20.times { |index| define_method("action#{index}") { index } } }
  end

  def background(now)
    @queue.shift(JOBS)
    @sessions.delete_if { |_, session| session.until < now }
    @carts.delete_if { |_, cart| cart.until < now }
    @minutes.concat(Array.new(10) { |index| { at: now, value: index.to_f.to_s } })
    @minutes.shift(10) if @minutes.size > 10 * 24 * PER_HOUR / 8
    return unless (now % (6 * PER_HOUR)).zero?

    @rates = Array.new(300) { |number| ["currency#{number}", number.to_s] }.to_h
  end
end

Recording.run(ARGV) { |random, hour| HealthyApp.new(random, hour) } if $PROGRAM_NAME == __FILE__
