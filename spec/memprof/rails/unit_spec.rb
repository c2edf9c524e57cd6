# frozen_string_literal: true

require "memprof"
require "memprof/rails/unit"

RSpec.describe Memprof::Rails::Unit do
  it "counts objects of a unit that runs alone" do
    unit = described_class.start
    Array.new(500) { Object.new }
    expect(unit.finish.objects).to be >= 500
  end

  it "does not know the objects of units that overlap" do
    first = described_class.start
    second = described_class.start
    expect([second.finish.objects, first.so_far, first.finish.objects]).to eq([nil, nil, nil])
    expect(described_class.start.finish.objects).to be_an(Integer)
  end

  it "counts the bytes of the slots, where Ruby does" do
    unit = described_class.start
    Array.new(500) { Object.new }
    bytes = unit.finish.bytes
    RUBY_VERSION.start_with?("3.2.") ? expect(bytes).to(be_nil) : expect(bytes).to(be_between(20_000, 40_000))
  end

  it "does not know the bytes of units that overlap" do
    units = Array.new(2) { described_class.start }
    expect(units.map { |unit| unit.finish.bytes }).to eq([nil, nil])
  end

  it "knows the time of the GC only while Ruby measures it" do
    measured = GC.measure_total_time
    times = [true, false].map do |measures|
      GC.measure_total_time = measures
      unit = described_class.start
      GC.start
      unit.finish.gc_time
    end
    expect(times).to match([be > 0, nil])
  ensure
    GC.measure_total_time = measured
  end

  it "counts a unit within another one for both" do
    outer = described_class.start
    inner = described_class.start(outer)
    Array.new(500) { Object.new }
    inner.query
    expect([inner.finish.objects, outer.finish.objects]).to all(be >= 500)
    expect([inner.sql, outer.sql]).to eq([1, 1])
  end
end
