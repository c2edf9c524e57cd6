# frozen_string_literal: true

require "memprof/dump"
require "objspace"

RSpec.describe Memprof::Dump::Values do
  {
    nil => nil, true => true, false => false, 0 => 0, -5 => -5, (2**62 - 1) => 2**62 - 1, 1.5 => 1.5,
    Float::INFINITY => "Infinity", -Float::INFINITY => "-Infinity", :name => ":name",
    :"odd name" => ":odd name", :+ => ":+"
  }.each do |value, expected|
    it "writes #{value.inspect} as #{expected.inspect}" do
      expect(described_class.encode(value)).to eq(expected)
    end
  end

  it "writes what is not a number as text" do
    expect(described_class.encode(Float::NAN)).to eq("NaN")
    expect(described_class.encode("\xFF".b.to_sym)).to eq(":\\xFF")
  end

  it "writes every other object as its address" do
    [Object.new, "text", [1], 2**62, Class.new, Class.new.new, Comparable].each do |object|
      address = JSON.parse(ObjectSpace.dump(object))["address"]
      expect(described_class.encode(object)).to eq(address)
    end
  end

  it "asks no object anything" do
    hostile = Class.new(BasicObject) { def method_missing(*) = ::Kernel.raise("asked") }
    expect(described_class.encode(hostile.new)).to match(/\A0x\h+\z/)
    liar = Class.new do
      def self.name = raise("asked")
      def to_s = "<0x0>"
      def ==(_) = true
    end
    expect(described_class.encode(liar.new)).to match(/\A0x\h{3,}\z/)
  end

  it "hides numbers and names where contents are not wanted, and no more" do
    hidden = [1, 1.5, :name].map { |value| described_class.encode(value, contents: false) }
    expect(hidden).to eq(["(hidden)"] * 3)
    expect([nil, true].map { |value| described_class.encode(value, contents: false) }).to eq([nil, true])
    expect(described_class.encode("text", contents: false)).to match(/\A0x\h+\z/)
  end
end
