# frozen_string_literal: true

# How soon does the agent name a leak, and how often does it name one in a healthy app?

require_relative "support"
require "tempfile"
require "zlib"
require "memprof/agent/trends"

# Records of a healthy app (support/healthy_app.rb), and what a sampler would see of them.
class Replay
  FILE = File.join(__dir__, "support/healthy_app.bin")
  WORKERS = 8
  PER_HOUR = 12
  HOURS = 24
  STEPS = HOURS * PER_HOUR
  # Garbage of all workers per hour: the recorded app, whose time is compressed, stands for a larger one.
  GARBAGE = 2e9
  # Bytes of an object of garbage, on average.
  OBJECT = 100
  # The share of time that the sampler is on.
  SHARE = 0.01
  FIRST = 1.8e9

  # One worker's series: what the sampler estimates at each step, by site.
  Worker = Struct.new(:columns)
  # Points as the table has them: fine ones, and the means of four.
  Column = Struct.new(:fine, :coarse) do
    def self.of(points) = new(points, points.each_slice(4).map { |four| four.sum / four.size })
  end

  Judgement = Memprof::Agent::Trends::Judgement
  Series = Memprof::Agent::Trends::SeriesTable::Series

  # Hours at which the recorded processes start.
  STARTS = [3, 9, 17].freeze
  RECORDED = 30

  # Records the app if there is no record: with `support/healthy_app.bin` deleted, it is made anew.
  def self.record
    records = STARTS.each_with_index.map do |hour, seed|
      Tempfile.create("memprof-bench") do |file|
        program = File.join(__dir__, "support/healthy_app.rb")
        system(RbConfig.ruby, program, file.path, seed.to_s, hour.to_s, RECORDED.to_s, exception: true)
        Marshal.load(File.binread(file.path)) # rubocop:disable Security/MarshalLoad
      end
    end
    File.binwrite(FILE, Zlib.deflate(Marshal.dump(records), 9))
  end

  def self.all
    record unless File.exist?(FILE)
    records = Marshal.load(Zlib.inflate(File.binread(FILE))) # rubocop:disable Security/MarshalLoad
    records.map { |record| new(record) }
  end

  def initialize(record)
    @sites = record[:sites]
    @steps = record[:steps].size
    hourly = record[:steps].sum * OBJECT / (@steps / PER_HOUR)
    # Objects that a recorded object stands for, and samples of it.
    @scale = GARBAGE / WORKERS / hourly
    @samples = @scale * SHARE
  end

  # A worker that starts after some steps of the record, and knows nothing of what was before.
  def worker(random, offset, leak: nil)
    columns = @sites.to_h do |file, line, klass, size, lives|
      [[file, line, klass], series(lives.lazy, size, @samples, offset, random)]
    end
    columns[["leak.rb", 1, "String"]] = leak_series(leak, random) if leak
    columns.compact!
    Worker.new(columns.transform_values { |rows| rows.map { |row| Column.of(row) } })
  end

  # Steps by which a worker can start later in the record.
  def room = @steps - STEPS

  private

  # What a step adds is live until the end.
  def leak_series(bytes_per_hour, random)
    size = 100
    count = (bytes_per_hour / WORKERS / PER_HOUR / size).round
    lives = Array.new(STEPS) { |step| [step, STEPS + 1, count] }
    series(lives, size, SHARE, 0, random)
  end

  # Bytes, errors and ages at the end of each step. Each object is sampled or not, for as long as it lives.
  def series(lives, size, samples, offset, random)
    changes = Array.new(STEPS + 2, 0)
    births = Array.new(STEPS + 2, 0.0)
    lives.each do |born, gone, count|
      born -= offset
      next if born.negative? || born >= STEPS

      sampled = poisson(count * samples, random)
      next if sampled.zero?

      gone = [gone - offset, STEPS + 1].min
      [[born, sampled], [gone, -sampled]].each do |step, more|
        changes[step] += more
        births[step] += more * born
      end
    end
    sums(changes, births, size) if changes.any? { |change| !change.zero? }
  end

  def sums(changes, births, size)
    weight = size / SHARE
    live = born = 0
    rows = Array.new(STEPS) do |step|
      live += changes[step]
      born += births[step]
      age = (live * (step + 0.5) - born) * 3600 / PER_HOUR
      [live * weight, Math.sqrt(live) * weight, age * weight]
    end
    rows.transpose
  end

  def poisson(mean, random)
    return [(mean + Math.sqrt(mean) * normal(random)).round, 0].max if mean > 30

    limit = Math.exp(-mean)
    count = 0
    product = random.rand
    while product > limit
      count += 1
      product *= random.rand
    end
    count
  end

  def normal(random) = Math.sqrt(-2 * Math.log(1 - random.rand)) * Math.cos(2 * Math::PI * random.rand)

  # A day of several workers.
  class Day
    FINE = 36
    EVERY = 6 # steps, half an hour

    def initialize(workers)
      @workers = workers
      @sites = workers.flat_map { |worker| worker.columns.keys }.uniq
      @times = Column.of(Array.new(STEPS) { |step| FIRST + (step + 1) * 300.0 })
    end

    # The hours until sites are named, by site.
    def named
      found = {}
      (3 * PER_HOUR).step(STEPS, EVERY) do |steps|
        (@sites - found.keys).each { |site| found[site] = steps.fdiv(PER_HOUR) if growth(site, steps) }
      end
      found
    end

    private

    def growth(site, steps)
      return if sum(site, steps - 1) - sum(site, steps - 2 * PER_HOUR) < 1 << 20

      times = points(@times, steps)
      tracks = @workers.map do |worker|
        columns = worker.columns[site]
        series = Series.new(*columns.map { |column| points(column, steps) }) if columns
        Judgement::Track.new(FIRST, times, series)
      end
      Judgement.of(tracks, times.last)
    end

    def sum(site, step) = @workers.sum { |worker| worker.columns[site]&.first&.fine&.at(step) || 0 }

    # The points that a table has after so many steps.
    def points(column, steps)
      merged = [(steps - FINE + 3) / 4, 0].max
      column.coarse[[merged - 60, 0].max...merged] + column.fine[merged * 4...steps]
    end
  end
end

if $PROGRAM_NAME == __FILE__
  Bench.title("How soon does the agent name a leak, and how often does it name one in a healthy app?")
  random = Random.new(Integer(ENV.fetch("SEED", "1")))
  # Workers are drawn some times, and days are combinations of them.
  drawn = Bench.size(40, 10)
  healthy = Replay.all.flat_map do |replay|
    [0, replay.room / 2].map { |offset| Array.new(drawn) { replay.worker(random, offset) } }
  end
  days = Bench.size(1000, 6)
  alarms = Array.new(days) do |day|
    found = Replay::Day.new(healthy[day % healthy.size].sample(Replay::WORKERS, random: random)).named
    found.each { |site, hours| puts("named in a healthy app after #{hours} h: #{site.join(" ")}") }
    found.size
  end
  leaking = Replay.all.flat_map do |replay|
    Array.new(drawn) { replay.worker(random, random.rand(replay.room), leak: 20 << 20) }
  end
  times = Array.new(Bench.size(100, 5)) do
    workers = leaking.sample(Replay::WORKERS, random: random)
    Replay::Day.new(workers).named.fetch(["leak.rb", 1, "String"], Float::INFINITY)
  end.sort
  Bench.table(Bench::LIMITS, [
    Bench.limit("20 MiB/h in 2 GB/h of garbage: named after, median", times[times.size / 2], 6, 1, " h"),
    Bench.limit("worst of #{times.size} runs", times.last, 6, 1, " h"),
    Bench.limit("false alarms in #{Memprof::Units.count(days)} healthy days of 8 workers", alarms.sum, 1, 0)
  ])
end
