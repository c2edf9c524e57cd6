# frozen_string_literal: true

require "memprof/agent/trends"

RSpec.describe Memprof::Agent::Trends::Judgement do
  let(:random) { Random.new(7) }
  let(:mib) { 1 << 20 }
  let(:beginning) { 1_800_000_000.0 }

  # `load` are the objects that were allocated until an hour.
  def table(hours, load: ->(hour) { hour * 1e6 }, &live)
    Memprof::Agent::Trends::SeriesTable.new.tap do |table|
      (hours * 12 + 1).to_i.times do |point|
        hour = point / 12.0
        table.add(beginning + point * 300, { "site" => live.call(hour) }, allocated: load.call(hour))
      end
    end
  end

  def track(table)
    described_class::Track.new(table.settled, table.times, table.series["site"], nil, table.allocated)
  end

  # `bytes` at an hour, none of which are freed: their ages are the integral over the bytes so far.
  def leak(hours, workers: 1, noise: 0.0, **load, &bytes)
    Array.new(workers) do
      age = 0.0
      track(table(hours, **load) do |hour|
        age += bytes.call(hour) * 300
        [[bytes.call(hour) + noise * (random.rand - 0.5), 0].max, (noise / 10)**2, age]
      end)
    end
  end

  # `bytes` at an hour, whose mean age is always the same.
  def turnover(hours, age: 1800.0, &bytes)
    [track(table(hours) { |hour| [bytes.call(hour), 0.0, bytes.call(hour) * age] })]
  end

  def judge(tracks) = described_class.new(tracks, beginning + 25 * 3600 * 10, 3600.0).growth

  def verdict(tracks) = described_class.new(tracks, tracks.first.times.last, 3600.0).growth

  it "accuses a line that only grows, with rate, error and hours" do
    growth = verdict(leak(7) { |hour| 20.0 * mib * hour })
    expect(growth.rate / mib).to be_within(0.5).of(20)
    expect(growth.hours).to eq(6)
    expect(growth.error).to be < mib
    expect([growth.growing, growth.workers]).to eq([1, 1])
  end

  it "accuses a leak in noise, and a small one in many workers" do
    growth = verdict(leak(13, noise: 8.0 * mib) { |hour| 20.0 * mib * hour + 30 * mib })
    expect(growth.rate / mib).to be_within(4).of(20)
    growth = verdict(leak(7, workers: 8, noise: 0.3 * mib) { |hour| 2.5 * mib * hour })
    expect(growth.rate / mib).to be_within(3).of(20)
    expect(growth.growing).to be >= 7
  end

  it "knows the level of a site that has stopped growing" do
    level = ->(tracks) do
      found = described_class.new(tracks, tracks.first.times.last, 3600.0).level
      found && (found / mib).round
    end
    # A store that is emptied by a fifth each time that it is full.
    full = ->(hour) { hour < 16 ? hour * 12.5 * mib : (160 + hour % 2 * 20) * mib }
    expect(level.(leak(37, workers: 3, noise: 0.3 * mib, &full))).to be_between(190, 201)
    # Not for long enough, or without work.
    expect(level.(leak(24, workers: 3, &full))).to be_nil
    expect(level.(leak(37, workers: 3, load: ->(hour) { [hour, 26].min * 1e6 }, &full))).to be_nil
    # It grows as slowly as the smallest leak that is named, or it is small.
    expect(level.(leak(40) { |hour| 1000.0 * mib + 1.8 * mib * hour })).to be_nil
    expect(level.(leak(24) { 20.0 * mib })).to be_nil
  end

  it "does not accuse what may be a buffer in each of many workers, until it is larger than most" do
    small = ->(hours) { verdict(leak(hours, workers: 8) { |hour| 1.5 * mib * hour }) }
    expect(small.call(7)).to be_nil
    expect(small.call(9).hours).to eq(8)
  end

  it "counts the workers in which it grows" do
    tracks = leak(7, workers: 2) { |hour| 5.0 * mib * hour } + leak(7, workers: 3) { 0.6 * mib }
    growth = verdict(tracks)
    expect([growth.growing, growth.workers]).to eq([2, 5])
  end

  {
    "nothing" => ->(_) { 0.0 },
    "a constant" => ->(_) { 50.0 },
    "a step" => ->(hour) { hour < 4 ? 10.0 : 90.0 },
    "three steps" => ->(hour) { [10.0, 40.0, 70.0].at((hour / 3).floor) || 70.0 },
    "a plateau" => ->(hour) { [20.0 * hour, 60.0].min },
    "a cache that fills" => ->(hour) { 100 * (1 - Math.exp(-hour / 2.5)) },
    "a sawtooth" => ->(hour) { 20.0 * (hour % 2) },
    "a slow sawtooth" => ->(hour) { 10.0 * (hour % 7) },
    "a decline" => ->(hour) { 100 - hour * 8 }
  }.each do |name, shape|
    it "does not accuse #{name}" do
      (5..10).each do |hours|
        next if name == "a slow sawtooth" && hours.between?(5, 7)

        expect(verdict(leak(hours) { |hour| shape.call(hour) * mib })).to be_nil, "after #{hours} h"
      end
    end
  end

  describe "while the load rises from hour to hour" do
    let(:load) { ->(hour) { 1e6 * hour**2 } }

    it "does not accuse a cache that fills" do
      (5..12).each do |hours|
        filling = leak(hours, load: load) { |hour| 100.0 * mib * (1 - Math.exp(-(hour**2) / 30)) }
        expect(verdict(filling)).to be_nil, "after #{hours} h"
      end
    end

    it "accuses what grows with the work, or with time" do
      expect(verdict(leak(6, load: load) { |hour| 3.0 * mib * hour**2 })).not_to be_nil
      expect(verdict(leak(6, load: load) { |hour| 20.0 * mib * hour })).not_to be_nil
    end
  end

  it "does not accuse what grows back to where it was" do
    again = leak(18) { |hour| [80.0, (9 - hour).abs * 10].min * mib }
    expect(verdict(again)).to be_nil
    higher = leak(24) { |hour| [80.0, (9 - hour).abs * 10].min * mib + [hour - 17, 0].max * 10 * mib }
    expect(verdict(higher)).not_to be_nil
  end

  it "does not accuse a few large objects" do
    lumps = Array.new(9) { random.rand(8.0) }
    expect(verdict(leak(8) { |hour| lumps.count { |lump| lump < hour } * 10.0 * mib })).to be_nil
  end

  it "does not accuse growth by objects that are replaced: sessions in the morning, a queue" do
    expect(verdict(turnover(8) { |hour| (5 + hour * 8) * mib })).to be_nil
  end

  it "waits for major GCs: old objects remain until then" do
    tracks = leak(7) { |hour| 20.0 * mib * hour }
    { 100 => false, 4 => false, 1 => true, 0.5 => true }.each do |hours, named|
      track = tracks.first.dup
      track.majors = track.times.map { |time| ((time - beginning) / 3600 / hours).floor.to_f }
      expect(!verdict([track]).nil?).to be(named)
    end
  end

  it "discounts the first half hour" do
    expect(verdict(leak(5.2) { |hour| 20.0 * mib * hour })).to be_nil
    expect(verdict(leak(5.8) { |hour| 20.0 * mib * hour })).not_to be_nil
    warm = verdict(leak(6) { |hour| hour < 0.5 ? 200.0 * mib * hour : 100.0 * mib })
    expect(warm).to be_nil
  end

  it "needs longer windows where ages are unknown" do
    unknown = ->(hours) { [track(table(hours) { |hour| [20.0 * mib * hour, 0.0, nil] })] }
    expect(verdict(unknown.call(12))).to be_nil
    expect(verdict(unknown.call(17)).hours).to eq(16)
  end

  it "does not accuse a random walk" do
    found = Array.new(40) do
      level = 60.0 * mib
      verdict(leak(18) { |_| level = [level + (random.rand - 0.5) * 6 * mib, 0].max })
    end
    expect(found.compact).to be_empty
  end

  it "ignores workers that ended" do
    old = leak(2) { |hour| 20.0 * mib * hour }
    expect(judge(old)).to be_nil
    growth = verdict(leak(7) { |hour| 20.0 * mib * hour } + old)
    expect(growth.workers).to eq(1)
  end
end
