# frozen_string_literal: true

RSpec.describe Memprof::Sparkline do
  it "draws from the least to the most" do
    expect(described_class.of([0, 1, 2, 3, 4, 5, 6, 7])).to eq "▁▂▃▄▅▆▇█"
    expect(described_class.of([1000, 1035, 1070], unicode: false)).to eq "_=#"
  end

  it "is flat where nothing changes" do
    expect(described_class.of([5, 5, 5])).to eq "▁▁▁"
  end

  it "leaves numbers out where there are too many, but not the first and the last" do
    expect(described_class.of((0..99).to_a, width: 5)).to eq "▁▂▄▆█"
    expect(described_class.of([0] * 99 + [1], width: 5)).to eq "▁▁▁▁█"
  end

  it "is empty of nothing" do
    expect(described_class.of([])).to eq ""
  end
end
