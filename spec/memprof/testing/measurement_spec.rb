# frozen_string_literal: true

require "memprof/testing"

RSpec.describe Memprof::Testing::Measurement do
  def measure(warmup: 0, bytes: false, retained: false, &block)
    described_class.new(block, described_class::Plan.new(warmup, bytes, retained, []))
  end

  def counts(rows)
    rows.reject(&:internal?).group_by(&:class_name).transform_values { |same| same.sum(&:objects) }
  end

  it "counts exactly what the block allocates, and nothing of its own" do
    expect(counts(measure { nil }.allocated)).to eq({})
    expect(counts(measure { 7.times { Object.new } }.allocated)).to eq("Object" => 7)
    expect(counts(measure(bytes: true, retained: true) { Object.new }.allocated)).to eq("Object" => 1)
  end

  it "says where" do
    row = measure { Object.new }.allocated.find { |candidate| candidate.class_name == "Object" }
    expect([row.file, row.line]).to eq([__FILE__, __LINE__ - 1])
  end

  it "counts objects that die meanwhile" do
    allocated = measure do
      3.times do
        100.times { Object.new }
        GC.start
      end
    end.allocated
    expect(counts(allocated)).to eq("Object" => 300)
  end

  it "counts as retained what lives after a collection, but not the block's value" do
    kept = []
    retained = measure(retained: true) do
      5.times { kept << Object.new }
      [Object.new, "value".dup]
    end.retained
    expect(counts(retained)).to eq("Object" => 5)
  end

  it "knows the bytes of freed objects when asked for bytes" do
    rows = measure(bytes: true) { 10.times { "x" * 10_000 } }.allocated
    expect(rows.sum(&:bytes)).to be_between(100_000, 110_000)
  end

  it "leaves the collector as it was" do
    measure(bytes: true) { Object.new }
    expect(GC.disable).to be(false)
    measure(bytes: true) { Object.new }
    expect(GC.enable).to be(true)
  end

  it "turns the collector on again when the last of several threads has left" do
    inner = Queue.new
    outer = Queue.new
    other = Thread.new do
      measure(bytes: true) do
        inner << true
        outer.pop
      end
    end
    inner.pop
    measure(bytes: true) { Object.new }
    expect(GC.disable).to be(true)
    outer << true
    other.join
    expect(GC.disable).to be(false)
  ensure
    GC.enable
  end

  it "does not count what other threads allocate" do
    stop = false
    noise = Thread.new { Object.new until stop }
    allocated = 4.times.map { counts(measure { 3.times { Object.new }; Thread.pass }.allocated) }
    expect(allocated.uniq).to eq([{ "Object" => 3 }])
  ensure
    stop = true
    noise.join
  end

  it "counts what threads of the block allocate" do
    expect(counts(measure { Thread.new { 4.times { Object.new } }.join }.allocated)).to include("Object" => 4)
  end

  it "runs the block for warming up, uncounted" do
    runs = 0
    expect(counts(measure(warmup: 2) { (runs += 1).times { Object.new } }.allocated)).to eq("Object" => 3)
  end

  it "passes on what the block raises, and measures again afterwards" do
    sessions = []
    allow(Memprof::Session).to receive(:new).and_wrap_original do |new, *options|
      new.call(*options).tap { |session| sessions << session }
    end
    expect { measure(bytes: true) { raise "no" } }.to raise_error("no")
    expect(catch(:out) { measure { throw :out, 1 } }).to eq(1)
    expect(sessions.size).to eq(2)
    expect(sessions).to all(be_closed)
    RSpec::Mocks.space.proxy_for(Memprof::Session).reset
    expect(counts(measure { Object.new }.allocated)).to eq("Object" => 1)
    expect(GC.disable).to be(false)
  ensure
    GC.enable
  end
end
