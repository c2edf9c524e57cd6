# frozen_string_literal: true

require "memprof/web/treemap"

RSpec.describe Memprof::Web::Treemap do
  def layout(*weights, room: [0, 0, 600, 400])
    described_class.layout(weights.zip(weights), *room)
  end

  it "gives each part its share of the room" do
    boxes = layout(6, 6, 4, 3, 2, 2, 1)
    boxes.each do |(_, _, width, height), weight|
      expect(width * height).to be_within(0.01).of(600 * 400 * weight / 24.0)
    end
  end

  it "keeps boxes apart, and in the room" do
    boxes = layout(*1..40, room: [10, 20, 300, 100]).map(&:first)
    boxes.each do |left, top, width, height|
      expect([left, top]).to all(be >= 10)
      expect([left + width, top + height]).to match([be <= 310.001, be <= 120.001])
    end
    boxes.combination(2) do |(left, top, width, height), (other_left, other_top, other_width, other_height)|
      across = [left + width, other_left + other_width].min - [left, other_left].max
      down = [top + height, other_top + other_height].min - [top, other_top].max
      expect([across, down].min).to be < 0.001
    end
  end

  it "makes them as square as the authors of the method do" do
    boxes = layout(6, 6, 4, 3, 2, 2, 1).map(&:first)
    expect(boxes.map { |_, _, width, height| [width / height, height / width].max }.max).to be < 3
  end

  it "has nothing to lay out of nothing" do
    expect(layout).to eq([])
    expect(layout(0, 0)).to eq([])
    expect(layout(1, room: [0, 0, 0, 10])).to eq([])
    expect(layout(5, 0).size).to eq(1)
  end
end
