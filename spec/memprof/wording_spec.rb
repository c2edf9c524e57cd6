# frozen_string_literal: true

require "spec_helper"
require "memprof/wording"

RSpec.describe Memprof::Wording do
  it "writes a remark as a note" do
    expect(described_class.note("The dump is truncated.")).to eq("Note: The dump is truncated.")
  end

  describe ".memory" do
    def sentence(**growth)
      growth = growth.transform_values { |value| value.is_a?(Integer) ? value << 20 : value }
      growth[:change] = growth[:after] - growth[:before]
      described_class.memory({ objects: 0, iseqs: 0, cause: nil }.merge(growth))
    end

    it "says how much of the growth is in objects, and what the rest is" do
      cause = { key: "malloc", name: "native memory not owned by Ruby objects", change: 128 << 20 }
      expect(sentence(before: 60, after: 190, objects: 2, cause: cause)).to eq(
        "RSS grew by 130.0 MiB (from 60.0 MiB to 190.0 MiB), 2.0 MiB of it in Ruby objects. " \
        "Another 128.0 MiB: native memory not owned by Ruby objects; " \
        "record it with Memprof::Malloc (docs/malloc.md)."
      )
      cause = { key: "files", name: "mapped files", change: 5 << 20 }
      expect(sentence(before: 60, after: 70, objects: -1, cause: cause)).to end_with(
        ", 1.0 MiB less in Ruby objects. Another 5.0 MiB: mapped files."
      )
    end

    it "names instruction sequences if they are most of it" do
      expect(sentence(before: 60, after: 160, objects: 99, iseqs: 90)).to end_with(
        "99.0 MiB of it in Ruby objects: 90.0 MiB are instruction sequences, see `Memprof.iseqs`."
      )
    end

    it "finds nothing to explain where the RSS did not grow" do
      expect(sentence(before: 60, after: 50)).to eq("RSS went from 60.0 MiB to 50.0 MiB.")
      expect(sentence(before: 60, after: 60)).to eq("RSS stayed at 60.0 MiB.")
    end
  end

  it "says how much larger or smaller something is" do
    expect([2048, -10, 0].map { |bytes| described_class.larger(bytes) })
      .to eq(["2.0 KiB larger", "10 B smaller", "as large as before"])
  end

  it "calls no growth by its name" do
    sum = { count: 1500, size: 2048 }
    totals = { change: { count: 0, size: 0 }, before: sum, after: sum }
    expect(described_class.growth(totals)).to eq("No growth: 1,500 objects (2.0 KiB)")
  end

  it "knows dumps of two processes by what is in both: next to nothing" do
    totals = ->(before, kept) { { before: { count: before }, kept: { count: kept } } }
    unrelated = [[0, 0], [40_000, 0], [40_000, 1], [40_000, 30_000], [500, 1]].map do |before, kept|
      described_class.unrelated?(totals[before, kept])
    end
    expect(unrelated).to eq([true, true, true, false, false])
  end
end
