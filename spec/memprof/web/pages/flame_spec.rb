# frozen_string_literal: true

require "memprof/web"
require "rack"

RSpec.describe "the flame graph of Memprof::Web" do
  include WebBrowser

  before { needs(:flame) }

  let(:app) { web_app(cache_dump(3)) }
  let(:heap) { Memprof::Heap.open(cache_dump(3)) }
  let(:store) { heap.where("class = Hash").max_by(&:retained) }

  def json(path) = ask(app, path).json

  # Edges of the frames that are drawn, by depth.
  def drawn(page)
    boxes = page.body.scan(/<svg x="([\d.]+)%" y="(\d+)" width="([\d.]+)%"/)
    rows = boxes.group_by { |_, y, _| Integer(y, 10) }
    rows.transform_values { |row| row.map { |x, _, width| [x.to_f, width.to_f] } }
  end

  it "answers what the heap answers: each frame with what is under it" do
    data = json("/heaps/1/flame.json")
    expect(data).to eq(heap.ask(:flame, limit: 2000))
    expect(data[:frames].first[3]).to eq(heap.overview[:objects][:size])
    name = data[:names].index("Session@[]")
    _, _, own, total, objects, address = data[:frames].find { |frame| frame[1] == name }
    sessions = heap.instances_of("Session").to_a
    expect([own, total, objects]).to eq([sessions.sum(&:memsize), sessions.sum(&:retained), 5000])
    expect(heap.at(address).class_name).to eq("Session")
  end

  it "draws frames within those that they are under, side by side" do
    rows = drawn(ask(app, "/heaps/1/flame"))
    expect(rows[0]).to eq([[0.0, 100.0]])
    rows.each_value do |boxes|
      boxes.sort.each_cons(2) { |(left, width), (right, _)| expect(left + width).to be <= right + 0.01 }
    end
    rows.keys.sort.each_cons(2) do |above, below|
      inside = rows[below].all? do |left, width|
        rows[above].any? { |x, whole| x <= left + 0.01 && left + width <= x + whole + 0.01 }
      end
      expect(inside).to be(true)
    end
  end

  it "links frames to the class, and the one object to its page" do
    page = ask(app, "/heaps/1/flame")
    single = json("/heaps/1/flame.json")[:frames].select { |frame| frame[4] == 1 && frame[5] }
    one = single.max_by { |frame| frame[3] }
    expect(page.links).to include("/heaps/1/classes/Session", "/heaps/1/objects/#{one[5]}")
    expect(page.body).to include("<text x=\"4\" y=\"13\">Session@[]</text>")
    expect(page.body).to match(/Session@\[\]\n\d\.\d MiB, /)
    expect(page.body).to match(%r{data-json="/heaps/1/flame.json"})
  end

  it "shows what one object retains" do
    data = json("/heaps/1/flame.json?of=#{store.address}")
    expect(data[:frames].first[3]).to eq(store.retained)
    expect(ask(app, "/heaps/1/flame?of=#{store.address}").body).to include("Hash (5000)", "of the heap")
  end

  it "says what is wrong with a question" do
    expect(ask(app, "/heaps/1/flame?of=0x1").body).to include("no object has the address 0x1")
    expect(ask(app, "/heaps/1/flame?limit=0").status).to eq(400)
  end

  it "is no longer than a page should be" do
    expect(ask(app, "/heaps/1/flame").body.bytesize).to be < 100 * 1024
  end

  it "escapes names" do
    names = ["root", "</svg><script>alert(1)</script>"]
    icicle = Memprof::Web::Icicle.new(names, [[0, 0, 0, 100, 0, nil], [0, 1, 100, 100, 1, "0x10"]])
    expect(icicle.boxes(most: 10, least: 1).map(&:name)).to eq(names)
    view = Memprof::Web::View.new(nil, nil, {})
    html = view.icicle(names, [[0, 0, 0, 100, 0, nil], [0, 1, 100, 100, 1, "0x10"]]) { nil }
    expect(html).not_to include("<script")
  end

  it "draws the widest frames if there are too many, never one without what it is under" do
    frames = [[0, 0, 0, 100, 0, nil], [0, 1, 0, 60, 0, nil], [0, 2, 40, 40, 1, nil], [1, 3, 60, 60, 1, nil]]
    boxes = Memprof::Web::Icicle.new(%w[root a b c], frames).boxes(most: 3, least: 0)
    places = boxes.map { |box| [box.name, box.depth, box.left] }
    expect(places).to eq([["root", 0, 0], ["a", 1, 0], ["c", 2, 0]])
  end
end
