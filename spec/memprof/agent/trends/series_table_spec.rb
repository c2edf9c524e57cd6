# frozen_string_literal: true

require "memprof/agent/trends"

RSpec.describe Memprof::Agent::Trends::SeriesTable do
  subject(:table) { described_class.new(sites: 4) }

  let(:site) { ["app.rb", 1, "String"] }

  def add(minutes, live, table: self.table)
    table.add(1_000_000.0 + minutes * 60, live)
  end

  # As the table thins them, but from all points: fine ones for three hours, means of four before that.
  def naive(points)
    coarse = []
    while points.size > 36
      coarse << points.first(4).sum / 4
      points = points.drop(4)
    end
    coarse.last(60) + points
  end

  it "has the mean of the intervals of five minutes as a point" do
    (0..5).each { |minute| add(minute, { site => [(minute + 1) * (16 << 10), 4.0, 3.0] }) }
    series = table.series[site]
    expect(series.bytes).to eq([3.5 * (16 << 10)])
    expect(series.errors).to eq([2.0])
    expect(series.ages).to eq([3.0])
    expect(table.times).to eq([1_000_000.0 + 150])
  end

  it "thins old points as a naive computation does, and stays small" do
    random = Random.new(1)
    values = Array.new(1200) { 1e6 + random.rand(1e6) }
    add(0, { site => [values.first, 0.0, 0.0] })
    points = (1...values.size).map do |index|
      add(index * 5, { site => [values[index], 0.0, 0.0] })
      values[index]
    end
    points[0] = (values[0] + values[1]) / 2
    expected = naive(points)
    expect(table.times.size).to be <= 96
    expect(table.series[site].bytes.size).to eq(table.times.size)
    table.series[site].bytes.zip(expected) { |is, shall| expect(is).to be_within(1e-3).of(shall) }
  end

  it "is unknown before a site was observed, and zero when nothing of it is alive" do
    (0..3).each { |point| add(point * 5, {}) }
    add(20, { site => [50_000, 0.0, 0.0] })
    add(25, {})
    expect(table.series[site].bytes).to eq([nil, nil, nil, 50_000.0, 0.0])
  end

  it "replaces the smallest site by a larger one" do
    small = Array.new(4) { |index| ["small.rb", index, "Array"] }
    live = small.each_with_index.to_h { |key, index| [key, [20_000 + index, 0.0, 0.0]] }
    [0, 5].each { |minute| add(minute, live) }
    add(10, live.merge(site => [25_000, 0.0, 0.0]))
    expect(table.series.keys).to match_array(small)
    add(15, live.merge(site => [40_000, 0.0, 0.0]))
    expect(table.series.keys).to match_array(small.drop(1) + [site])
  end

  it "begins anew when the clock jumps or there is a gap" do
    [0, 5, 10].each { |minute| add(minute, { site => [50_000, 0.0, 0.0] }) }
    add(9, { site => [50_000, 0.0, 0.0] })
    expect(table.times).to be_empty
    add(14, { site => [50_000, 0.0, 0.0] })
    add(60, { site => [50_000, 0.0, 0.0] })
    expect(table.series).to be_empty
    expect(table.settled).to be_nil
  end

  it "is settled after half an hour, or when it has observed as much as it missed, at most 16 hours" do
    { 100 => 30, 3000 => 60, 1_000_000 => 16 * 60 }.each do |missed, minutes|
      table.clear
      (0..200).each do |point|
        objects = missed + point * 250
        table.add(1_000_000.0 + point * 300, { site => [50_000, 0.0, 0.0] }, allocated: objects)
      end
      expect(table.settled).to eq(1_000_000.0 + minutes * 60)
    end
  end

  it "says that ages are unknown" do
    [0, 5].each { |minute| add(minute, { site => [50_000, 0.0, nil] }) }
    expect(table.series[site].ages).to eq([nil])
  end

  it "has bounded memory with 100,000 sites" do
    table = described_class.new(sites: 64)
    random = Random.new(2)
    all = Array.new(100_000) { |index| ["gen#{index}.rb", 1, "String"] }
    12.times do |round|
      live = all.to_h { |key| [key, [20_000 + random.rand(50_000), 0.0, 0.0]] }
      add(round * 5, live, table: table)
    end
    expect(table.series.size).to eq(64)
    expect(table.series.each_value.map { |series| series.bytes.size }).to all(eq(table.times.size))
    size = table.instance_variable_get(:@sums).size
    expect(size).to be <= 64 * 3
  end
end
