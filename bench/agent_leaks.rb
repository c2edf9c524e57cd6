# frozen_string_literal: true

# How soon does the agent name a leak, and how often does it name one in a healthy app?

require_relative "support"
require "tempfile"
require "zlib"
require "memprof/agent/trends"
require_relative "support/recording"

# Records of healthy apps (support/healthy_app.rb and other_app.rb), and what a sampler would see of them.
class Replay
  WORKERS = 8
  PER_HOUR = 12
  # Garbage of all workers per hour: the recorded app, whose time is compressed, stands for a larger one.
  GARBAGE = 2e9
  # Bytes of an object of garbage, on average.
  OBJECT = 100
  # The share of time that the sampler is on.
  SHARE = 0.01
  FIRST = 1.8e9
  LEAK = ["leak.rb", 1, "String"].freeze

  # One worker's series: what the sampler estimates at each step, by site. `settled` is the step after the
  # warm-up, and `allocated` the number of objects at each step.
  Worker = Struct.new(:columns, :settled, :allocated)
  # Points as the table has them: fine ones, and the means of four.
  Column = Struct.new(:fine, :coarse) do
    def self.of(points) = new(points, points.each_slice(4).map { |four| four.sum / four.size })
  end

  Judgement = Memprof::Agent::Trends::Judgement
  Levels = Memprof::Agent::Trends::Levels
  Series = Memprof::Agent::Trends::SeriesTable::Series

  # Hours of the day at which the recorded processes start, and how many are recorded.
  STARTS = [9, 16, 23, 6, 13].freeze
  HOURS = 54
  APPS = %w[healthy_app other_app].freeze

  # Records an app whose record is missing: delete `support/healthy_app.bin` to record it again.
  def self.record(app, path)
    records = STARTS.each_with_index.map do |hour, index|
      Tempfile.create("memprof-bench") do |file|
        program = File.join(__dir__, "support", "#{app}.rb")
        arguments = [101 + index, hour, HOURS].map(&:to_s)
        system(RbConfig.ruby, program, file.path, *arguments, exception: true)
        Marshal.load(File.binread(file.path)) # rubocop:disable Security/MarshalLoad
      end
    end
    File.binwrite(path, Zlib.deflate(Marshal.dump(records), 9))
  end

  def self.all(app)
    path = File.join(__dir__, "support", "#{app}.bin")
    record(app, path) unless File.exist?(path)
    records = Marshal.load(Zlib.inflate(File.binread(path))) # rubocop:disable Security/MarshalLoad
    # One app, in whose busy processes more is allocated than in those of a weekend.
    hourly = records.sum { |record| record[:steps].sum } * OBJECT / (HOURS * records.size)
    records.first(Bench.size(STARTS.size, 1)).map { |record| new(record, hourly) }
  end

  def initialize(record, hourly)
    @sites = record[:sites].map { |*site, lives| [*site, Recording.unpack(lives)] }
    @objects = record[:steps]
    # Objects that a recorded object stands for, and samples of it.
    @scale = GARBAGE / WORKERS / hourly
    @samples = @scale * SHARE
  end

  # A worker whose agent starts after some steps of the record, and knows nothing of what was before.
  def worker(random, offset = 0, leak: nil)
    @steps = @objects.size - offset
    columns = @sites.to_h do |file, line, klass, size, lives|
      [[file, line, klass], series(lives.lazy, size, @samples, offset, random)]
    end
    columns[LEAK] = leak_series(*leak, offset, random) if leak
    columns.compact!
    columns.transform_values! { |rows| rows.map { |row| Column.of(row) } }
    total = 0.0
    allocated = @objects.map { |objects| total += objects }
    Worker.new(columns, settled(allocated, offset), Column.of(allocated.drop(offset)))
  end

  private

  # As the table counts the warm-up.
  def settled(allocated, offset)
    enough = allocated.index { |objects| objects >= 2 * allocated[offset] } || allocated.size
    (enough - offset).clamp(PER_HOUR / 2, 16 * PER_HOUR)
  end

  # What a step adds is live until the end: equally much by the clock, or by work.
  def leak_series(bytes_per_hour, clock, offset, random)
    size = 100
    mean = bytes_per_hour.fdiv(WORKERS * PER_HOUR * size)
    per_object = mean * @objects.size / @objects.sum
    lives = @objects.each_with_index.map do |objects, step|
      [step, @objects.size + 1, clock == :work ? per_object * objects : mean]
    end
    series(lives, size, SHARE, offset, random)
  end

  # Bytes, errors and ages at the end of each step. Each object is sampled or not, for as long as it lives.
  def series(lives, size, samples, offset, random)
    changes = Array.new(@steps + 2, 0)
    births = Array.new(@steps + 2, 0.0)
    lives.each do |born, gone, count|
      born -= offset
      next if born.negative? || born >= @steps

      sampled = poisson(count * samples, random)
      next if sampled.zero?

      gone = [gone - offset, @steps + 1].min
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
    rows = Array.new(@steps) do |step|
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

  # Several workers, for as long as they were recorded.
  class Life
    FINE = 36
    EVERY = 6 # steps, half an hour
    LEAST = 32 << 20
    LONGEST = 24 * PER_HOUR
    LOOK = 3 * PER_HOUR

    # `levels` are those of the app's earlier lives.
    def initialize(workers, levels = Levels.new([]))
      @workers = workers
      @levels = levels
      @sites = workers.flat_map { |worker| worker.columns.keys }.uniq
      @steps = workers.map { |worker| worker.allocated.fine.size }.min
      @sums = {}
      @times = Column.of(Array.new(@steps) { |step| FIRST + (step + 1) * 300.0 })
    end

    def days = @steps.fdiv(24 * PER_HOUR)

    # The hours until sites are named, by site.
    def named(sites = @sites)
      found = {}
      (3 * PER_HOUR).step(@steps, EVERY) do |steps|
        sites.each { |site| look(site, steps) } if (steps % LOOK).zero?
        (sites - found.keys).each { |site| found[site] = steps.fdiv(PER_HOUR) if grows?(site, steps) }
      end
      found
    end

    private

    # A site that stays near its maximum is a store, which may fill again in the next life.
    def grows?(site, steps)
      return false unless grown?(site, steps)

      growth = judgement(site, steps).growth
      growth && !@levels.within?(site, nil, growth.share)
    end

    def look(site, steps)
      return if sums(site)[steps - 1] < LEAST

      level = judgement(site, steps).level
      @levels.add(site, nil, level, 0) if level
    end

    def judgement(site, steps)
      times = points(@times, steps)
      tracks = @workers.map do |worker|
        columns = worker.columns[site]
        series = Series.new(*columns.map { |column| points(column, steps) }) if columns
        settled = FIRST + worker.settled * 300.0
        Judgement::Track.new(settled, times, series, nil, points(worker.allocated, steps))
      end
      Judgement.new(tracks, times.last, 3600.0)
    end

    # Whether there is any hour since which the gain is as large as {Judgement} wants it at least: that
    # is far cheaper to answer.
    def grown?(site, steps)
      sums(site)[steps - 1] - sums(site)[[steps - LONGEST, 0].max...steps].min >= LEAST
    end

    def sums(site)
      @sums[site] ||= begin
        columns = @workers.filter_map { |worker| worker.columns[site]&.first&.fine&.first(@steps) }
        columns.transpose.map(&:sum)
      end
    end

    # The points that a table has after so many steps.
    def points(column, steps)
      merged = [(steps - FINE + 3) / 4, 0].max
      column.coarse[[merged - 60, 0].max...merged] + column.fine[merged * 4...steps]
    end
  end
end

# The rates of false alarms and the times until leaks are named.
class AgentLeaks
  # Workers are drawn some times, and lives are combinations of them.
  DRAWN = Bench.size(40, 8)
  # Hours after the start of the process at which an agent starts late.
  LATE = 6

  def initialize
    @random = Random.new(Integer(ENV.fetch("SEED", "1")))
  end

  # Days, and sites that were named in them.
  def alarms(app, wanted)
    lots = Replay.all(app).product([0, LATE])
    # An agent that always starts late knows no other lives.
    levels = [0, LATE].to_h { |late| [late, Replay::Levels.new([])] }
    days = alarms = 0
    lots.each do |replay, late|
      workers = draw { replay.worker(@random, late * Replay::PER_HOUR) }
      until_days = days + wanted.fdiv(lots.size)
      while days < until_days
        life = Replay::Life.new(workers.sample(Replay::WORKERS, random: @random), levels[late])
        found = life.named
        found.each { |site, hours| puts("named in #{app} after #{hours} h: #{site.join(" ")}") }
        days += life.days
        alarms += found.size
      end
    end
    [days.round, alarms]
  end

  # Hours until a leak is named, in order.
  def times(clock, runs)
    lives = Replay.all("healthy_app").map do |replay|
      draw { replay.worker(@random, leak: [20 << 20, clock]) }
    end
    Array.new(runs) { |run|
      workers = lives[run % lives.size].sample(Replay::WORKERS, random: @random)
      Replay::Life.new(workers).named([Replay::LEAK]).fetch(Replay::LEAK, Float::INFINITY)
    }.sort
  end

  private

  def draw(&block) = Array.new(DRAWN, &block)
end

if $PROGRAM_NAME == __FILE__
  Bench.title("How soon does the agent name a leak, and how often does it name one in a healthy app?")
  leak = "20 MiB/h in 2 GB/h of garbage"
  rows = { time: leak, work: "#{leak}, more under load" }.flat_map do |clock, name|
    times = AgentLeaks.new.times(clock, Bench.size(100, 6))
    [
      Bench.limit("#{name}: named after, median", times[times.size / 2], 6, 1, " h"),
      Bench.limit("worst of #{times.size} runs", times.last, 6, 1, " h")
    ]
  end
  rows += Replay::APPS.map do |app|
    days, alarms = AgentLeaks.new.alarms(app, Bench.size(1000, 6))
    Bench.limit("false alarms in #{Memprof::Units.count(days)} days of #{app}", alarms, 1, 0)
  end
  Bench.table(Bench::LIMITS, rows)
end
