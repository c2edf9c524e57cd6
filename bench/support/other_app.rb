# frozen_string_literal: true

# Another app without a leak, for rules that were written with `healthy_app.rb` in view. Its caches have other
# policies: entries expire, a random one or a quarter of them is evicted, a cache is warmed after a deploy,
# connections last for hours, statistics are reset every other day, and weekends are quiet.
#
#     ruby bench/support/other_app.rb FILE SEED START_HOUR HOURS

require "json"
require_relative "recording"

# Requests, and the parts of the app that retain objects.
class OtherApp
  PER_HOUR = 12
  DAY = 24 * PER_HOUR
  Entry = Struct.new(:value, :until)
  Socket = Struct.new(:user, :channels, :until)
  Retry = Struct.new(:id, :payload, :attempts, :at)
  Login = Struct.new(:token, :flash, :until)

  # Requests per step by hour of the day: two time zones.
  LOAD = [8, 7, 5, 4, 4, 5, 8, 12, 16, 18, 20, 21, 20, 20, 22, 25, 28, 30, 28, 24, 20, 17, 13, 10].freeze
  # Shares of the load by day of the week.
  WEEK = [1.0, 1.05, 1.0, 0.95, 0.9, 0.25, 0.2].freeze

  def initialize(random, hour)
    @random = random
    @start = random.rand(7) * DAY + hour * PER_HOUR
    @step = 0
    @answers = {}
    @store = {}
    @rendered = {}
    @catalogue = {}
    @sockets = []
    @retries = []
    @logins = {}
    @counters = {}
    @codes = {}
    @buffers = []
    @traces = []
  end

  # Five minutes.
  def step
    now = @start + @step
    hour = now % DAY / PER_HOUR.to_f
    expected = LOAD[hour.floor] + (hour % 1) * (LOAD[(hour.floor + 1) % 24] - LOAD[hour.floor])
    expected *= WEEK[now / DAY % 7]
    count = (expected * (0.7 + @random.rand * 0.6)).round
    count.times { visit(now) }
    background(now)
    @step += 1
    count
  end

  private

  # Some keys are wanted far more often than others.
  def popular(number) = (number**@random.rand).to_i

  def visit(now)
    page
    answer(popular(5000), now)
    store(popular(9000), now)
    rendered(@random.rand(2500))
    catalogue(popular(4000))
    login(now)
    socket(now) if @random.rand < 0.08
    failure(now) if @random.rand < 0.1
    counter("customer-#{popular(4000)}")
    code("SKU#{popular(2000)}")
    buffer
    trace
  end

  # Garbage.
  def page
    rows = Array.new(25) { |id| { "id" => id, "name" => "row #{id}", "at" => @random.rand(100_000) } }
    JSON.parse(JSON.generate(rows)).map { |row| row.values.join(",") }
  end

  # Six hours after it was written, an entry expires; the sweeper finds it later.
  def answer(key, now)
    entry = @answers[key]
    return if entry && entry.until > now

    @answers[key] = Entry.new({ "key" => key.to_s, "body" => "a" * 300 }, now + 6 * PER_HOUR)
  end

  # As stores in memory do: when it is full, the least recently used quarter goes.
  def store(key, now)
    entry = @store.delete(key) || Entry.new("s" * 500, nil)
    entry.until = now
    @store[key] = entry
    (@store.size / 4).times { @store.shift } if @store.size > 1600
  end

  # Evicts one at random.
  def rendered(key)
    @rendered[key] ||= ["<div>#{key}</div>" * 15, { "etag" => key.to_s }]
    @rendered.delete(@rendered.keys.sample(random: @random)) if @rendered.size > 900
  end

  # The cache that is warmed; least recently used go first.
  def catalogue(key)
    found = @catalogue.delete(key) || { id: key, title: "Title #{key}", tags: Array.new(5) { +"tag" } }
    @catalogue[key] = found
    @catalogue.shift if @catalogue.size > 1500
  end

  def login(now)
    token = @random.rand < 0.2 ? @random.bytes(16) : @logins.keys.sample(random: @random)
    found = @logins[token] ||= Login.new(token, Array.new(3) { +"notice" }, 0)
    found.until = now + 2 * PER_HOUR
  end

  # Three hours on average.
  def socket(now)
    hours = -3 * Math.log(1 - @random.rand)
    channels = Array.new(6) { |number| "channel #{number}" }
    @sockets << Socket.new("user-#{@random.rand(9999)}", channels, now + (hours * PER_HOUR).round)
  end

  def failure(now) = @retries << Retry.new(@random.rand(1 << 40), "p" * 400, 0, now + 1)

  def counter(customer)
    row = @counters[customer] ||= { "name" => customer.dup, "days" => Array.new(8) { 0.0.to_s } }
    row["last"] = @step
  end

  def code(text) = @codes[text] ||= [text.dup, text.downcase]

  # Buffers grow to what the largest answer needs.
  def buffer
    index = @random.rand(12)
    wanted = 2000 + (@random.rand**6 * 60_000).round
    @buffers[index] = "\0" * wanted if wanted > (@buffers[index]&.bytesize || 0)
  end

  def trace
    @traces << "span #{@random.rand(1 << 30)} took #{@random.rand(90)} ms"
    @traces.shift if @traces.size > 3000
  end

  def background(now)
    @answers.delete_if { |_, entry| entry.until <= now } if (now % PER_HOUR).zero?
    @logins.delete_if { |_, found| found.until <= now }
    @sockets.reject! { |socket| socket.until <= now }
    retry_jobs(now)
    @counters.clear if (now % (2 * DAY)).zero?
    # Warms for two and a half hours.
    40.times { |index| catalogue(@step * 40 + index) } if @step < 30
  end

  # Tried again after 1, 2, 4 ... steps, and given up after two days.
  def retry_jobs(now)
    due, @retries = @retries.partition { |job| job.at <= now }
    due.each do |job|
      next if @random.rand < 0.6 || job.attempts > 8

      job.attempts += 1
      job.at = now + 2**job.attempts
      @retries << job
    end
  end
end

Recording.run(ARGV) { |random, hour| OtherApp.new(random, hour) } if $PROGRAM_NAME == __FILE__
