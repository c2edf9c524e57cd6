# frozen_string_literal: true

require "memprof/web"
require "rack"

RSpec.describe Memprof::Web::Page do
  include WebBrowser

  let(:app) { web_app(cache_dump) }
  let(:heap) { app.heaps.first.heap }

  before { Memprof::Web::Router.standard } # loads the pages

  def json(target) = ask(app, target.sub(/(?=\?|\z)/, ".json")).json

  def page(target)
    answer = ask(app, target)
    expect(answer.status).to eq(200), answer.body
    answer.body
  end

  it "shows the overview with links to what is counted" do
    body = page("/heaps/1/")
    expect(body).to include("<svg", "Classes that retain the most")
    link = ask(app, "/heaps/1/").links.find { |target| target.include?("type+%3D+STRING") }
    count = heap.overview[:counts][:strings]
    expect(body).to include(">#{Memprof::Units.count(count)}</a>")
    expect(json(link)[:count]).to eq(count)
  end

  it "explains the columns in tooltips" do
    column = Memprof::Columns.fetch(:retained)
    expect(WebBrowser.unescape(page("/heaps/1/objects")))
      .to match(/<th [^>]*title="#{column.sentence}"[^>]*><a [^>]*>#{column.heading}</)
  end

  it "counts on the overview what its links show" do
    counts = json("/heaps/1")[:overview][:counts]
    Memprof::Web::Pages::Overview::COUNTED.each do |name, _, where|
      shown = json("/heaps/1/objects?#{URI.encode_www_form(where: where)}")[:count]
      expect(shown).to eq(counts[name]), name.to_s
    end
  end

  it "has the histogram under the name that people look for" do
    menu = page("/heaps/1/classes")[%r{<nav class="menu".*?</nav>}m]
    expect(menu).to include('<a href="/heaps/1/classes" aria-current="page">Classes</a>')
    expect(json("/heaps/1/classes")[:rows]).to eq(heap.histogram(by: :class, limit: 50)[:rows])
    expect(page("/heaps/1/classes/Session")).to include('<a href="/heaps/1/classes" aria-current="true">')
  end

  it "has only pages of the heap in its menu, and leads elsewhere beside the heaps" do
    Dir.mktmpdir do |directory|
      %w[one two].each do |name|
        path = File.join(directory, name)
        File.write(path, "     12 app.rb:3:String\n")
        app.heaps.records.add(path, :tracked)
      end
      File.write(File.join(directory, "boot"), "{}")
      app.heaps.records.add(File.join(directory, "boot"), :boot)
    end
    body = page("/heaps/1/objects")
    menu = body[%r{<nav class="menu".*?</nav>}m].scan(/href="([^"]*)"/).flatten
    expect(menu).to all(start_with("/heaps/1/"))
    expect(body[%r{<header.*</header>}m]).to include('href="/tracked"', 'href="/boots"')
    expect(app.heaps.records.map(&:page_path)).to eq(%w[/tracked/1 /tracked/2 /boots/1])
    expect(page("/heaps")[%r{<nav class="menu".*?</nav>}m]).to include('href="/tracked"')
  end

  it "does not alarm with what memprof itself allocated" do
    own = json("/heaps/1")[:overview][:warnings].grep(/of memprof(?:'s own| itself) /)
    expect(own.size).to eq(1)
    expect(WebBrowser.unescape(page("/heaps/1/"))).to include(%(<p class="quiet">#{own.first}</p>))
  end

  it "groups objects, and the groups again" do
    data = json("/heaps/1/groups?by=class&then=line&sort=count")
    expected = heap.histogram(by: :class, then: :line, sort: :count, limit: 15, then_limit: 5)
    expect(data[:rows]).to eq(expected[:rows])
    expect(page("/heaps/1/groups?by=class&then=line")).to include("heap_cache.rb:18")
  end

  it "has pages of groups of groups that weigh what any page does" do
    body = page("/heaps/1/groups?by=class&then=line")
    expect(body.bytesize).to be < 80 * 1024
    second = json("/heaps/1/groups?by=class&then=line&page=2")
    expected = heap.histogram(by: :class, then: :line, limit: 15, offset: 15, then_limit: 5)
    expect(second[:rows]).to eq(expected[:rows])
    expect(second[:paging]).to include(page: 2, each: 15)
    charted = json("/heaps/1/groups?by=length&then=class")
    expect(charted[:rows].size).to be_between(2, 15)
    expect(charted[:paging][:total]).to eq(json("/heaps/1/groups?by=length")[:paging][:total])
  end

  it "has no page behind the last one of a list" do
    store = heap.where("type = HASH").top(1).first.address
    %W[objects? groups? groups?by=size& groups?by=class&then=line& strings? procs? threads?].each do |list|
      far = ask(app, "/heaps/1/#{list}page=999999999")
      expect([far.status, far.body]).to match([404, include("no page 999999999")]), list
    end
    expect(ask(app, "/heaps/1/objects/#{store}?references=999999999").status).to eq(404)
    expect(ask(app, "/heaps/1/objects/#{store}?referrers=2").status).to eq(404)
    expect(ask(app,
      "/heaps/1/objects.json?page=999999999").json[:error]).to include("no page 999999999")
    expect(json("/heaps/1/objects?where=class+%3D+Nothing")[:objects]).to eq([])
  end

  it "passes over the rows of earlier pages" do
    rows = heap.histogram(by: :class, limit: 100)[:rows]
    data = json("/heaps/1/groups?by=class&page=2")
    expect(data[:rows]).to eq(rows.drop(50))
    expect(data[:paging]).to include(page: 2, each: 50)
    expect(page("/heaps/1/groups?by=class&page=2")).to include("by=class&amp;page=1")
  end

  it "draws what has an order, in that order" do
    chart = json("/heaps/1/groups?by=size")[:chart]
    firsts = chart.map { |row| row[:key][/\d+/].to_i }
    expect(firsts).to eq(firsts.sort)
    expect(chart.sum { |row| row[:count] }).to eq(heap.size)
    expect(json("/heaps/1/groups?by=class")[:chart]).to be_nil
  end

  it "draws many generations as few bars, which lead to all of them" do
    groups = Memprof::Web::Pages::Groups.new(app.heaps, { heap: "1" }, { "by" => "generation" })
    expect(app.heaps.first).to receive(:answer).with(:histogram, include(bars: 100))
      .and_return({ rows: [], more: 0, chart: [{ key: "0..2", count: 6, size: 30 }] })
    expect(groups.data[:chart].first).to include(key: "0..2")
  end

  it "lists objects by what they are sorted by" do
    data = json("/heaps/1/objects?where=class+%3D+Session&sort=size&page=2")
    expected = heap.ask(:top, where: "class = Session", sort: :size, limit: 50, offset: 50)
    expect(data[:objects]).to eq(expected[:objects])
    expect(data[:paging]).to eq(page: 2, each: 50, total: 1000)
  end

  it "shows the spot of an error in a query, and the query to be mended" do
    answer = ask(app, "/heaps/1/objects?where=class+%3D+A+and+retaned+%3E+1&sort=size")
    expect(answer.status).to eq(400)
    expect(answer.body).to include("unknown field &quot;retaned&quot;", "^^^^^^^", 'name="where"',
      'name="sort" value="size"')
    expect(ask(app, "/heaps/1/objects.json?where=x+y").json[:error]).to match(/\^/)
  end

  it "says what other parameters may be" do
    {
      "groups?by=color" => "invalid by \"color\"; expected one of: class, line,",
      "objects?page=0" => "invalid page \"0\"; expected a number",
      "objects?sort=x" => "invalid sort \"x\"; expected one of",
      "leaks?threshold=200" => "expected a number above 0",
      "tree?of=0x1" => "no object has the address 0x1", "namespaces?under=Nowhere" => "Nowhere"
    }.each do |target, message|
      answer = ask(app, "/heaps/1/#{target}")
      expect([answer.status, WebBrowser.unescape(answer.body)]).to match([400, include(message)]), target
    end
  end

  it "shows everything about an object" do
    session = heap.where("class = Session").first
    data = json("/heaps/1/objects/#{session.address}")
    expect(data).to include(class: "Session", address: session.address, retained: session.retained)
    expect(data[:below][:branches].map { |branch| branch[:label] }).to match_array(%w[@visitor @pages])
    made = data[:source].find { |row| row[:line] == data[:site][:line] }
    expect(made[:text]).to include("Session.new(visitor)")
    body = page("/heaps/1/objects/#{session.address}")
    expect(body).to include("STORE", "<mark>", "@pages", "Retained objects by class")
  end

  it "pages references" do
    store = heap.where("type = HASH").top(1).first
    data = json("/heaps/1/objects/#{store.address}?references=3")
    expected = heap.ask(:object, of: store.id, limit: 25, references_offset: 50)
    expect(data[:references]).to eq(expected[:references])
    expect(data[:references].size).to eq(25)
  end

  it "has no object where there is none" do
    %w[0x1 x 0xzz 12 %3Cscript%3E].each do |address|
      expect(ask(app, "/heaps/1/objects/#{address}").status).to eq(404), address
    end
  end

  it "shows everything about a class, by its name or its address" do
    data = json("/heaps/1/classes/Session")
    expect(data[:instances][:count]).to eq(1000)
    expect(data[:sites][:rows].first[:key]).to match(/heap_cache.rb:\d+\z/)
    expect(json("/heaps/1/classes/#{data[:address]}")).to eq(data)
    expect(page("/heaps/1/classes/Sessions")).to include("STORE", ".fetch")
    expect(ask(app, "/heaps/1/classes/Nothing").status).to eq(404)
  end

  it "lists the VM's own objects in place of a class that they do not have" do
    expect(ask(app, "/heaps/1/classes/%3Ciseq%3E").location)
      .to eq("/heaps/1/objects?where=class+%3D+%22%3Ciseq%3E%22")
  end

  it "shows dumps of objspace, and what of a dump was cut" do
    directory = Dir.mktmpdir("memprof-spec-")
    whole = File.join(directory, "heap.json")
    run_ruby(<<~RUBY, args: [whole])
      require "objspace"
      $kept = Array.new(20) { Class.new.new }
      ObjectSpace.dump_all(output: File.open(ARGV.first, "w"))
    RUBY
    cut = File.join(directory, "cut.json")
    File.binwrite(cut, File.binread(whole, 200_000))
    app = web_app(whole, cut)
    %w[1 2].each do |id|
      start = ask(app, "/heaps/#{id}/").links + ask(app, "/heaps/#{id}/groups").links
      start.grep(%r{\A/heaps}).uniq.each { |link| expect(ask(app, link).status).to be < 400, link }
    end
  ensure
    FileUtils.rm_rf(directory)
  end

  it "leads from the overview to the line that leaks in three clicks" do
    first = ask(app, "/heaps/1/").links.grep(%r{/objects/0x}).map { |link| ask(app, link) }
    store = first.find { |answer| answer.body.include?("Hash (1000)") }
    second = store.links.grep(%r{/objects/0x}).first(60).map { |link| ask(app, link) }
    expect(second.any? { |answer| answer.body.match?(/<mark>.*STORE\[visitor\]/) }).to be(true)
  end

  it "shows leaks, namespaces, strings, collections, procs, threads and slots as the heap returns them" do
    {
      "leaks" => heap.leaks(limit: 20).except(:findings), "slots" => heap.slots,
      "namespaces" => heap.ask(:namespaces, depth: 1, limit: 100, sort: :retained),
      "strings" => heap.duplicates(limit: 50), "threads" => heap.ask(:threads, limit: 50),
      "collections" => heap.ask(:collections, limit: 50, sort: :unused),
      "procs" => heap.ask(:procs, limit: 50, sort: :retained)
    }.each do |name, expected|
      expect(json("/heaps/1/#{name}")).to include(expected), name
      expect(page("/heaps/1/#{name}")).to include("<h1>"), name
    end
  end

  it "counts in a namespace what its link shows" do
    json("/heaps/1/namespaces")[:rows].first(20).each do |row|
      where = Memprof::Web::Filter.namespace(row[:name])
      expect(heap.where(where).size).to eq(row[:count]), row[:name]
    end
  end

  it "opens the dominator tree anywhere" do
    store = heap.where("type = HASH").top(1).first
    data = json("/heaps/1/tree?of=#{store.address}&by_class=1")
    expect(data[:branches].first).to include(class: "Session", count: 1000)
    expect(page("/heaps/1/tree")).to include("<details>", "and ")
    expect(page("/heaps/1/tree?limit=100").bytesize).to be < 200 * 1024
  end

  it "goes to what is searched for" do
    session = heap.where("class = Session").first
    {
      session.address => "/heaps/1/objects/#{session.address}",
      session.address.delete_prefix("0x").upcase => "/heaps/1/objects/#{session.address}",
      "Sessions" => "/heaps/1/classes/Sessions", " Session " => "/heaps/1/classes/Session",
      "retained > 1KiB" => "/heaps/1/objects?where=retained+%3E+1KiB",
      "frozen" => "/heaps/1/objects?where=frozen"
    }.each do |words, place|
      expect(ask(app, "/heaps/1/search?#{URI.encode_www_form(q: words)}").location).to eq(place), words
    end
  end

  it "lists what contains it if it may be several things" do
    data = json("/heaps/1/search?q=visitor-42")
    expect(data[:strings][:count]).to be_positive
    files = json("/heaps/1/search?q=heap_cache.rb:18")[:files]
    expect(files[:rows].map { |row| row[:key] }).to all(end_with("heap_cache.rb:18"))
    classes = json("/heaps/1/search?q=Sess")[:classes][:objects]
    expect(classes.map { |row| row[:text] }).to include("class Session")
    expect(page("/heaps/1/search?q=nowhere-at-all")).to include("No class, file or text")
    expect(page("/heaps/1/search")).to include("an address, a class name")
  end

  it "finds classes in upper and lower case" do
    %w[sess SESSION SeSsIoN].each do |words|
      classes = json("/heaps/1/search?q=#{words}")[:classes]
      expect(classes[:objects].map { |row| row[:text] }).to include("class Session"), words
      list = "/heaps/1/objects?#{URI.encode_www_form(where: classes[:where])}"
      expect(json(list)[:count]).to eq(classes[:count])
    end
    odd = ["a.*b", "x/y z", "[", "\\", "#-{", "<a>", "x" * 5000]
    odd.each { |words|
      expect(ask(app, "/heaps/1/search?#{URI.encode_www_form(q: words)}").status).to be < 400, words
    }
  end

  it "links to what a root references, whatever that is called" do
    directory = Dir.mktmpdir("memprof-spec-")
    dump = File.join(directory, "heap.json")
    root = "odd root\" or size > 0 (x)"
    File.write(dump, <<~TEXT)
      {"address":"0x1000", "type":"STRING", "value":"one", "bytesize":3, "memsize":40}
      {"address":"0x1028", "type":"STRING", "value":"two", "bytesize":3, "memsize":40}
      #{JSON.generate({ type: "ROOT", root: root, references: ["0x1000"] })}
    TEXT
    app = web_app(dump)
    links = ["/heaps/1/", "/heaps/1/leaks", "/heaps/1/tree", "/heaps/1/objects/0x1000",
      "/heaps/1/groups?by=root"]
      .flat_map { |target|
      ask(app, target).links
    }.grep(/where=root/).uniq
    expect(links.size).to be_positive
    found = links.map { |link| ask(app, link.sub("objects?", "objects.json?")).json }
    expect(found).to all(include(count: 1))
  ensure
    FileUtils.rm_rf(directory)
  end

  it "shows where a proc was written, with its lines" do
    directory = Dir.mktmpdir("memprof-spec-")
    program = File.join(directory, "blocks.rb")
    dump = File.join(directory, "heap.memprof")
    File.write(program, <<~RUBY)
      require "memprof"
      def keep(&block) = block
      Memprof.start
      $kept = keep do
        :the_block_itself
      end
      Memprof.dump_all(ARGV.first)
    RUBY
    run_ruby(program, args: [dump]).then { |result| raise result.stderr unless result.success? }
    app = web_app(dump)
    row = ask(app, "/heaps/1/procs.json").json[:rows].find { |found|
      found[:file] == program && found[:line] == 4
    }
    data = ask(app, "/heaps/1/objects/#{row[:example][:address]}.json").json
    expect(data[:written]).to include(file: program, line: 4)
    expect(data[:written][:source].map { |line| line[:text] }).to include("  :the_block_itself")
    body = ask(app, "/heaps/1/objects/#{row[:example][:address]}").body
    expect(body).to include('href="#written"', 'id="written"', "blocks.rb:4", ":the_block_itself",
      "<mark>    4  $kept = keep do</mark>")
  ensure
    FileUtils.rm_rf(directory)
  end

  it "asks the same only once" do
    app
    allow(Memprof::Heap).to receive(:answer).and_call_original
    2.times { page("/heaps/1/leaks") }
    expect(Memprof::Heap).to have_received(:answer).once
  end
end
