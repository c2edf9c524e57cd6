# frozen_string_literal: true

require "json"
require "memprof/rspec"

# A count that differs from run to run makes a test that fails now and then, which is worse than none. What is
# retained differs seldom, but it does: the collector takes for a reference what only looks like one on the
# machine stack.
RSpec.describe Memprof::RSpec, "stability" do
  # Things that Ruby programs do, with what they leave in caches, and exact windows for what they allocate.
  work = ->(kept) do
    text = "a,b,c".split(",").map(&:upcase).join("-")
    { text: text, number: format("%05d", 42), match: text.match?(/b/i) }.to_a
    [3, 1, 2].sort_by { |number| -number }.each_slice(2).to_a
    Rational(3, 7).to_s
    kept << text.to_sym.to_s
    [text, Time.at(0), 10**30]
  end

  it "counts the same a hundred times in one process" do
    kept = []
    allocated, retained = 100.times.map { measure_counts(kept, work) }.transpose
    expect(allocated.tally.size).to eq(1), allocated.tally.inspect
    expect(retained.min).to eq(1)
    expect(retained.count(1)).to be >= 90, retained.tally.inspect
  end

  it "passes and fails the same each time" do
    50.times do
      expect { 5.times { Object.new } }.to allocate_at_most(5..5)
      expect { 5.times { Object.new } }.not_to allocate_at_most(4)
    end
  end

  it "counts the same in every process" do
    program = <<~RUBY
      require "memprof/testing"
      kept = []
      #{File.read(__FILE__)[/  work = ->.*?^  end\n/m]}
      plan = Memprof::Testing::Measurement::Plan.new(1, false, true, [])
      measured = Memprof::Testing::Measurement.new(-> { work.call(kept) }, plan)
      p [measured.allocated, measured.retained].map { |rows| rows.reject(&:internal?).sum(&:objects) }
    RUBY
    outputs = Array.new(ENV.fetch("STABILITY_PROCESSES", 5).to_i) { JSON.parse(run_ruby(program).stdout) }
    allocated, retained = outputs.transpose
    expect(allocated.tally.size).to eq(1), allocated.tally.inspect
    expect(retained.min).to eq(1)
    expect(retained.count(1)).to be >= retained.size - 1, retained.tally.inspect
  end

  def measure_counts(kept, work)
    plan = Memprof::Testing::Measurement::Plan.new(1, false, true, [])
    measured = Memprof::Testing::Measurement.new(-> { work.call(kept) }, plan)
    [measured.allocated, measured.retained].map { |rows| rows.reject(&:internal?).sum(&:objects) }
  end
end
