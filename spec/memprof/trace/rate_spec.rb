# frozen_string_literal: true

require "memprof/trace/requests"

RSpec.describe Memprof::Trace::Rate do
  it "takes each request if nothing else is asked for" do
    rate = described_class.new(nil, nil)
    expect(Array.new(100) { rate.allow? }).to all(be(true))
    rate = described_class.new(1, nil)
    expect(Array.new(100) { rate.allow? }).to all(be(true))
  end

  it "takes one in so many, by chance" do
    rate = described_class.new(10, nil)
    turns = Array.new(20_000) { rate.allow? }
    expect(turns.count(true)).to be_between(1700, 2300) # seven standard deviations
    expect(turns.each_slice(10).map { |ten| ten.count(true) }.uniq.size).to be > 2
  end

  it "takes so many a second at most" do
    now = 100.0
    allow(Memprof::Clock).to receive(:now) { now }
    rate = described_class.new(nil, 3)
    seconds = [100.0, 100.9, 101.0, 105.5].map do |time|
      now = time
      Array.new(5) { rate.allow? }.count(true)
    end
    expect(seconds).to eq([3, 0, 3, 3])
  end
end
