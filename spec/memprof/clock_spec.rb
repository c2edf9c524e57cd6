# frozen_string_literal: true

require "memprof/clock"

RSpec.describe Memprof::Clock do
  it "is monotonic" do
    before, now, after = Array.new(3) do |place|
      place == 1 ? described_class.now : Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
    expect(now).to be_between(before, after)
  end
end
