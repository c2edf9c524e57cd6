# frozen_string_literal: true

require "memprof/web"
require "rack"
require "tmpdir"

RSpec.describe "comparisons of Memprof::Web" do
  include WebBrowser

  let(:app) { web_app(cache_dump, cache_dump(2), cache_dump(3)) }
  let(:two) { "/diff?a=1&b=2" }
  let(:three) { "/diff?a=1&b=2&c=3" }

  def json(path) = ask(app, path.sub(/(\?|\z)/, '.json\1')).json

  def opened(number) = Memprof::Heap.open(cache_dump(number))

  it "goes to what there is to compare" do
    expect(ask(app, "/diff").location).to eq(three)
    expect(ask(web_app(cache_dump, cache_dump(2)), "/diff").location).to eq(two)
    expect(ask(web_app(cache_dump), "/diff").body).to include("A comparison needs two heaps")
    app.heaps.add(cache_dump)
    expect(json("/diff")[:open].map { |heap| heap[:name] })
      .to eq(%w[cache-1.memprof cache-2.memprof cache-3.memprof cache-1.memprof])
  end

  it "answers what the comparison of the heaps answers" do
    diff = opened(1).diff(opened(2), opened(3))
    data = json(three)
    expect(data[:totals]).to eq(diff.totals)
    expect(data[:rows][:rows].first(5)).to eq(diff.by_class(limit: 5))
    expect(data[:owners][:owners]).to eq(diff.by_owner(limit: 8, sort: :retained))
    expect(data[:survivors][:count]).to eq(diff.survived.size)
    sizes = (1..3).map { |number| opened(number).size }
    expect(data[:heaps].map { |heap| heap[:objects][:count] }).to eq(sizes)
  end

  it "finds the leak: what grew, what references it, and the line" do
    page = ask(app, three).body
    expect(page).to match(/Sessions::STORE -&gt; Hash \(3000\)/)
    expect(page).to match(%r{<rect[^>]*class="part survived"><title>survived: [12]\.\d MiB</title>})
    expect(ask(app, "#{three}&by=site").body).to include("examples/heap_cache.rb:18")
    rows = json("#{two}&by=site&sort=count")[:rows][:rows]
    expect(rows.first).to include(line: 18, new: a_hash_including(count: be_between(22_000, 22_010)))
  end

  it "draws what grew as a flame graph of both, with links to the last heap" do
    graphs = [1, 3].map { |number| opened(number).ask(:flame, limit: 200_000) }
    data = json("/diff/flame?a=1&b=2&c=3")
    expect(data[:frames].first.last(2)).to eq(graphs.map { |graph| graph[:frames][0][3] })
    sessions = data[:frames].find { |frame| data[:names][frame[1]] == "Session@[]" }
    expect(sessions.last(2)).to eq(graphs.map { |graph|
      graph[:frames].find { |frame| graph[:names][frame[1]] == "Session@[]" }[3]
    })
    page = ask(app, "/diff/flame?a=1&b=2&c=3")
    expect(page.body).to match(/Session@\[\]\n\+[\d.]+ [KM]iB: [\d.]+ [KM]iB → /).and include('class="grew')
    expect(page.links).to include("/heaps/3/classes/Session", "/heaps/1/flame")
    expect(ask(app, three).links).to include("/diff/flame?a=1&b=2&c=3")
    expect(["/diff/flame?a=1", "/diff/flame"].map { |path| ask(app, path).status }).to eq([400, 400])
  end

  it "compares what a filter chooses" do
    diff = opened(1).diff(opened(2))
    expect(json("#{two}&where=class+%3D+Session")[:totals]).to eq(diff.totals(where: "class = Session"))
    answer = ask(app, "#{two}&where=clas+%3D+Session")
    expect([answer.status, answer.body]).to match([400, /unknown field/])
  end

  it "lists what changed, page by page, and links to the heap that has it" do
    second = "/diff/objects?a=1&b=2&change=gone&page=2"
    expect(ask(app, second.sub("page=2", "page=999999999")).status).to eq(404)
    gone = json(second)
    expect(gone[:objects].size).to eq(100)
    expect(gone[:paging]).to eq(page: 2, each: 100, total: gone[:count])
    expect(gone[:objects].map { |object| object[:change] }.uniq).to eq(["gone"])
    expect(gone[:objects]).not_to include(*json("/diff/objects?a=1&b=2&change=gone")[:objects])
    address = gone[:objects].first[:address]
    expect(ask(app, second).links).to include("/heaps/1/objects/#{address}")
    kept = "/diff/objects?a=1&b=2&change=kept&sort=size"
    expect(ask(app, kept).links).to include("/heaps/2/objects/#{json(kept)[:objects].first[:address]}")
  end

  it "links a class and a type that only the first heap has to that one" do
    common = { address: "0x7f0000003000", type: "STRING", memsize: 40 }
    only = [{ address: "0x7f0000001000", type: "CLASS", name: "Gone" },
      { address: "0x7f0000002000", type: "OBJECT", class: "0x7f0000001000", ivars: 3, memsize: 40 }]
    Dir.mktmpdir do |directory|
      dumps = { "before.json" => [common, *only], "after.json" => [common] }.map do |name, objects|
        root = { type: "ROOT", root: "vm", references: objects.map { |object| object[:address] } }
        file = File.join(directory, name)
        File.write(file, [root, *objects].map { |row| "#{row.to_json}\n" }.join)
        file
      end
      web = web_app(*dumps)
      links = ["#{two}&by=class", "#{two}&by=type"].map do |path|
        ask(web, path).links.grep(%r{/(?:classes/Gone|groups\?by=class.*OBJECT)})
      end
      expect(links.flatten).to match([start_with("/heaps/1/classes/Gone"), start_with("/heaps/1/groups")])
      expect(links.flatten.map { |path| ask(web, path).status }).to eq([200, 200])
    end
  end

  it "links each number to the objects that make it" do
    links = ask(app, three).links.grep(%r{\A/diff/objects})
    expect(links).not_to be_empty
    new = links.find { |link| link.end_with?("change=new") && link.include?("Session") }
    query = URI.decode_www_form(URI(new).query).to_h
    count = opened(1).diff(opened(2)).new.where(query["where"]).size
    expect(json(new)[:count]).to eq(count)
  end

  it "counts what each reference from old to new retains" do
    interface = json("/diff/interface?a=1&b=2")
    expect(interface[:crossings].first)
      .to include(from: "Hash", class: "Session", references: 2000, keepalive_count: 13)
    expect(ask(app, "/diff/interface?a=1&b=2").body).to include("up to 13", "Sessions::STORE")
  end

  it "says what is wrong with a question" do
    {
      "/diff?a=1" => [400, /a comparison needs two heaps/], "/diff?a=1&b=9" => [404, /no heap 9/],
      "#{two}&by=colour" => [400, /expected one of: class, site, file, type/],
      "#{two}&sort=survived" => [400, /invalid sort/],
      "/diff/objects?a=1&b=2&change=survived" => [400, /third dump/],
      "/diff/interface" => [400, /a comparison needs two heaps/]
    }.each do |path, (status, message)|
      answer = ask(app, path)
      expect([answer.status, answer.body]).to match([status, message]), path
    end
  end

  it "releases a heap that is forgotten" do
    ask(app, two)
    app.heaps.forget(2)
    expect(ask(app, two).status).to eq(404)
  end

  it "is linked from the heaps where there are several" do
    expect(ask(app, "/heaps/1/").links).to include("/diff")
    expect(ask(web_app(cache_dump), "/heaps/1/").links).not_to include("/diff")
  end

  it "says so where nothing changed" do
    body = ask(app, "/diff?a=1&b=1").body
    expect(body).to include("Nothing changed.").and match(/\d+ unchanged rows not shown/)
  end

  it "leaves out what did not change, and says how much that is" do
    all = opened(1).diff(opened(2)).by_class
    unchanged = all.count { |row| row.values_at(:change, :new, :gone).flat_map(&:values).all?(&:zero?) }
    rows = json("#{two}&limit=1000")[:rows]
    expect(rows).to include(unchanged: unchanged, more: 0)
    expect([unchanged.positive?, rows[:rows].size]).to eq([true, all.size - unchanged])
  end
end
