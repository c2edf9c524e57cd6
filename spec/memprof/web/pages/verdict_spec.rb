# frozen_string_literal: true

require "memprof/web"
require "memprof/library"
require "rack"
require "tmpdir"

RSpec.describe "what grows, of Memprof::Web" do
  include WebBrowser

  let(:app) { web_app(cache_dump, cache_dump(2), cache_dump(3)) }
  let(:three) { "/verdict?dumps=1,2,3" }

  def json(path) = ask(app, path.sub(/(\?|\z)/, '.json\1')).json

  it "is what several dumps open on" do
    expect(ask(app, "/").location).to eq(three)
    expect(ask(app, "/verdict").location).to eq(three)
    expect(ask(web_app(cache_dump), "/").location).to eq("/heaps/1/")
    expect(ask(web_app(cache_dump), "/verdict").body).to include("Two dumps of one process")
  end

  it "answers what the verdict on the heaps is, with its sentences" do
    verdict = Memprof::Heap::Verdict.new
    (1..3).each { |number| verdict.add(Memprof::Heap.open(cache_dump(number))) }
    data = json(three)
    same = %i[reachable seconds rss more]
    expect(data.slice(*same)).to eq(verdict.answer.slice(*same))
    first = data[:findings].first
    expect(first).to include(verdict.answer[:findings].first.slice(:class, :count, :size, :retained_by))
    expect(first[:sentence])
      .to eq("4,000 more Session instances retain #{Memprof::Units.bytes(first[:gained])}")
    expect(first[:around]).to include(line: 27, text: "    STORE[visitor] ||= Session.new(visitor)")
  end

  it "shows the path, the line with its source, and each dump" do
    page = ask(app, three).body
    expect(page).to include("Sessions::STORE -&gt; Hash[*]",
      "<mark>   27      STORE[visitor] ||= Session.new(visitor)")
    first = json(three)[:findings].first
    size = Regexp.escape(Memprof::Units.bytes(first[:size][1]))
    expect(page).to match(%r{<dt>cache-2\.memprof</dt><dd><svg.*?</svg><span class="figure">#{size}</span>})
    example = first[:example][:address]
    expect(page).to include(%(href="/heaps/3/objects/#{example}"))
  end

  it "is linked from a process in the library that was dumped again" do
    Dir.mktmpdir do |directory|
      library = Memprof::Library.new(directory)
      numbers = [3, 1, 2].to_h do |time|
        [time, library.take(app: "shop") { |part| IO.copy_stream(cache_dump(time), part) }.number]
      end
      library.take(app: "other") { |part| IO.copy_stream(cache_dump(1), part) }
      app = Memprof::Web.new(heaps: Memprof::Web::Heaps.new(library: library), gate: WebBrowser::Open.new)
      series = ask(app, "/library.json").json[:dumps].to_h { |row| [row[:id], row[:series]] }
      expect(series.values.compact.uniq).to eq([numbers.sort.map(&:last)])
      expect(series.values_at(*numbers.values)).to all(be_an(Array))
      expect(ask(app, "/library").links).to include("/verdict?dumps=#{numbers.sort.map(&:last).join(",")}")
    end
  end

  it "refuses what it can't compare" do
    expect(ask(app, "/verdict?dumps=1").status).to eq(400)
    expect(ask(app, "/verdict?dumps=1,9").status).to eq(404)
    expect(ask(app, "#{three}&own=%28").status).to eq(400)
  end

  it "merges the paths of the objects that a filter matches" do
    rows = json("/heaps/3/paths?where=class+%3D+Session")[:rows]
    expect(rows).to contain_exactly(include(class: "Session", count: 5000,
      retained_by: ["Sessions::STORE -> Hash[*]"]))
    page = ask(app, "/heaps/3/paths?where=class+%3D+Session").body
    expect(page).to include("Sessions::STORE -&gt; Hash[*]", 'href="/heaps/3/classes/Session"')
    expect(ask(app, "/heaps/3/paths?where=clas+%3D+Session").status).to eq(400)
    expect(ask(app, "/heaps/3/objects?where=class+%3D+Session").links)
      .to include("/heaps/3/paths?where=class+%3D+Session")
  end
end
