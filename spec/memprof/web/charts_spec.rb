# frozen_string_literal: true

require "memprof/web"

RSpec.describe "charts of Memprof::Web" do
  let(:view) { Memprof::Web::View.new(nil, nil, {}) }

  # Values of the axis, and the places of their lines; the first line is zero.
  def axis(svg)
    lines = svg.scan(/<line[^>]* y1="([\d.]+)"/).flatten.map(&:to_f)
    [svg.scan(%r{class="value">([^<]*)<}).flatten, lines]
  end

  def bars(*sizes)
    rows = sizes.each_with_index.map { |size, index| { size: size, count: 1, key: index, where: nil } }
    view.bars(rows) { |row| "key #{row[:key]}" }
  end

  it "have lines at round values, at most four" do
    {
      [10, 7] => ["5 B", "10 B"], [1, 1] => ["1 B"], [1000, 3] => ["500 B", "1000 B"],
      [4096, 1] => ["1.0 KiB", "2.0 KiB", "3.0 KiB", "4.0 KiB"],
      [3_900_000, 1] => ["1.0 MiB", "2.0 MiB", "3.0 MiB"],
      [70 * 1024, 1] => ["20.0 KiB", "40.0 KiB", "60.0 KiB"]
    }.each { |sizes, values| expect(axis(bars(*sizes)).first).to eq(values), sizes.inspect }
    _, lines = axis(bars(10, 7))
    expect(lines).to eq([177.0, 97.0, 17.0])
  end

  it "have values of times, and what their ends are" do
    points = [[1_700_000_000, 2048], [1_700_000_060, 7100], [1_700_000_120, nil]]
    svg = view.bars_of_time(points, "RSS") { |size| "#{size} B" }
    expect(axis(svg).first).to eq(["2048 B", "4096 B", "6144 B"])
    expect(svg.scan(/<rect/).size).to eq(2)
    expect(svg).to include("<span>2023-11-14 22:13:20 UTC</span><span>2023-11-14 22:15:20 UTC</span>")
  end

  it "count requests' costs in their units" do
    costs = { "objects" => [4100, ["2,000", "4,000"]], "time" => [0.0171, ["5.0 ms", "10.0 ms", "15.0 ms"]],
              "memory" => [4100, ["2.0 KiB", "4.0 KiB"]] }
    costs.each do |kind, (most, values)|
      parts = Array.new(2) { { max: most, requests: 1, line: 1 } }
      allow(view).to receive(:request_url).and_return("/traces/1/requests/1")
      expect(axis(view.timeline({ parts: parts, seconds: 1.0 }, kind)).first).to eq(values), kind
    end
  end

  it "label at most twelve bars, by their width" do
    svg = bars(*1..30)
    labels = svg.scan(%r{<text x="4" y="13">([^<]*)<}).flatten
    expect(labels).to eq((0...30).step(3).map { |key| "key #{key}" })
    expect(svg.scan(/<svg x="[\d.]+%" y="177" width="10.0%"/).size).to eq(10)
  end
end
