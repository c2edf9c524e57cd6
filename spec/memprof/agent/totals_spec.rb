# frozen_string_literal: true

require "memprof/agent"
require "zlib"

RSpec.describe Memprof::Agent::Totals do
  include AgentIntervals

  # The names and numbers of classes in a profile.
  def allocated(profile) = profile.group("allocated", "class", "objects", nil).to_h { |name, count, _|
                             [name, count]
                           }

  def retained(profile) = profile.group("retained", "class", "objects", nil).to_h { |name, count, _|
                            [name, count]
                          }

  it "adds up what was allocated, and says what is live at last" do
    first = interval { $kept = Array.new(30) { Object.new } }
    second = interval(at: 1_700_000_060) { Array.new(20) { Object.new } }
    totals = totals_of(first, second)
    expect(allocated(totals.profile)["Object"]).to eq(50)
    expect(retained(totals.profile)["Object"].to_i).to be < 20
    sums, last = totals.read
    expect(sums).to have_attributes(intervals: 2, cpu: 1.0,
      allocated_bytes: first.report.total_allocated_memsize + second.report.total_allocated_memsize)
    expect(last).to equal(second)
    expect(totals.profile.meta.values_at("started_at", "duration").map(&:class)).to eq([Float, Float])
  ensure
    $kept = nil
  end

  it "is bounded, and loses nothing" do
    intervals = Array.new(5) do |number|
      interval(at: 1_700_000_000 + 60 * number) { run_as("Object.new\n" * 40, "app#{number}.rb") }
    end
    totals = totals_of(*intervals, sites: 50)
    expect(totals.profile.enum_for(:each_site).count).to eq(51)
    expect(totals.profile.totals["allocated"]["objects"]).to eq(intervals.sum { |one|
                                                                  one.report.total_allocated
                                                                })
  end

  it "encodes a profile once for all who ask for it" do
    totals = totals_of(interval { Object.new })
    first = totals.pprof("inuse_space")
    expect(totals.pprof("inuse_space")).to equal(first)
    totals.add(interval(at: 1_700_000_060) { Object.new })
    expect(totals.pprof("inuse_space")).not_to equal(first)
    expect(Zlib.gunzip(first)).to include("alloc_space", "inuse_space", "service=")
  end

  it "knows nothing before the first interval" do
    totals = described_class.new
    expect([totals.profile, totals.pprof("inuse_space"),
      totals.difference("inuse_space", nil)]).to all(be_nil)
    expect(totals.read).to match([have_attributes(allocated_bytes: 0), nil])
  end

  it "counts an interval once that ends while it subscribes" do
    one = interval { Object.new }
    allow(Memprof::Agent).to receive(:intervals).and_return([one])
    totals = described_class.new.tap(&:subscribe)
    totals.add(one)
    expect(totals.read.first.intervals).to eq(1)
  ensure
    totals&.unsubscribe
  end

  it "starts from zero in the child of a fork" do
    totals = totals_of(interval { Object.new })
    totals.after_fork
    expect([totals.profile, totals.read.first.allocated_bytes]).to eq([nil, 0])
  end
end
