# frozen_string_literal: true

require "memprof/testing"

RSpec.describe Memprof::Testing::Limit do
  it "takes a number as the most" do
    limit = described_class.new(5)
    expect([0, 5, 6].map { |actual| limit.allow?(actual) }).to eq([true, true, false])
  end

  it "takes a range as a window" do
    expect((1..6).select { |actual| described_class.new(2..5).allow?(actual) }).to eq([2, 3, 4, 5])
    expect((1..6).select { |actual| described_class.new(2...5).allow?(actual) }).to eq([2, 3, 4])
    expect((1..6).select { |actual| described_class.new(..3).allow?(actual) }).to eq([1, 2, 3])
    expect((1..6).select { |actual| described_class.new(5..).allow?(actual) }).to eq([5, 6])
  end

  it "takes whole numbers of any kind, and ranges without an end" do
    expect(described_class.new(5.0).allow?(5)).to be(true)
    expect(described_class.new(1..Float::INFINITY).allow?(1_000_000)).to be(true)
  end

  it "says itself in words" do
    words = [5, 0, 2..5, 2...5, 0..5, ...5, 3..3, 4.., ..4].map { |value| described_class.new(value).to_s }
    expect(words).to eq(["at most 5", "no", "2 to 5", "2 to below 5", "at most 5", "fewer than 5",
      "exactly 3", "at least 4", "at most 4"])
  end

  it "refuses what is no limit" do
    no_limits = [nil, -1, :many, "5", "a".."c", (nil..nil), Complex(1, 1), -3..2, 1.5, 0.5..2, Float::NAN,
      Float::INFINITY, 5..2, 3...3, ...0]
    no_limits.each do |value|
      expect { described_class.new(value) }.to raise_error(ArgumentError, /is not a limit/), value.inspect
    end
  end
end
