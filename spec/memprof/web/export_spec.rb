# frozen_string_literal: true

require "csv"
require "memprof"
require "memprof/cli"
require "memprof/web"
require "rack"
require "rexml/document"
require "shellwords"
require "tmpdir"

# Every page as CSV, Markdown and SVG, as far as it has tables and pictures.
RSpec.describe Memprof::Web::Export do
  include WebBrowser

  # Pages that only lead elsewhere, are files, or are about core files (see pages/blocks_spec.rb).
  elsewhere = %w[Home LiveDump LiveRequestsFile RecordingList TraceList TrackedList BootList LibraryDump
    LiveRequest LiveSource LiveMalloc Blocks BlockList Block]
  # Pages with a picture.
  drawn = %w[Overview Flame Diff DiffFlame Graph TrackedDiff TrackedFlame RecordingFlame Recording BootFlame
    TracePage]
  amounts = Memprof::Web::Records::BootRecord::VALUES.to_h { |value| [value, 40] }
  file = { name: "app.rb", path: "/app/app.rb", kind: "require", loaded: true, gem: "app", seconds: 0.1,
           self_seconds: 0.1, rss: 0, also_required_by: [], requires: [], total: amounts, self: amounts }
  boot = { format: "memprof-boot", version: 1, seconds: 0.1, rss: 0, total: amounts, gems: [], after_boot: [],
           boot: file.merge(kind: "program", requires: [file]) }
  request = { start: 1_700_000_000_000_000, time: 0.5, rails: { controller: "users", action: "show" },
              request: { PATH_INFO: "/users/1", REQUEST_METHOD: "GET" }, response: { code: 200 },
              tracers: { objects: { created: 9, bytes: 360 } } }

  before(:all) do
    Memprof::Web::Router.standard
    @directory = Dir.mktmpdir("memprof-export-")
    names = %w[report.json boot.json requests.json app.malloc later.json]
    files = names.map { |name| File.join(@directory, name) }
    report = Memprof.report(stack: 8) { $made = Array.new(30) { |number| number.to_s * 9 } }
    File.write(files[0], report.to_json)
    File.write(files[4], Memprof.report(stack: 8) { $made += Array.new(9, &:to_s) }.to_json)
    File.write(files[1], JSON.generate(boot))
    File.write(files[2], Array.new(3) { |number|
      "#{JSON.generate(request.merge(start: request[:start] + number * 1_000_000))}\n"
    }.join)
    recorded = run_ruby(<<~RUBY, args: [files[3]])
      require "memprof/malloc"
      def import = Array.new(20) { "x" * 40_000 }
      Memprof::Malloc.record(ARGV[0]) { 3.times { import; sleep(0.05) } }
    RUBY
    raise recorded.stderr unless recorded.success?

    heaps = Memprof::Web::Heaps.new(live: Memprof::Web::Live.new,
      library: Memprof::Library.new(File.join(@directory, "library")))
    [1, 2].each { |number| heaps.add(cache_dump(number)) }
    heaps.each { |entry| entry.heap(patience: 120) }
    files.zip(%i[tracked boot trace malloc tracked]).each { |path, kind| heaps.records.add(path, kind) }
    @app = Memprof::Web.new(heaps: heaps, gate: WebBrowser::Open.new)
  end

  after(:all) do
    FileUtils.rm_rf(@directory)
    $made = nil
  end

  let(:app) { @app }
  let(:heap) { app.heaps.first.heap }
  let(:session) { heap.where("class = Session").first.address }
  let(:addresses) do
    of_heap = %W[/ /leaks /flame /groups /groups?by=class&then=line /groups?by=size /objects /classes
      /namespaces /tree /paths?where=class+%3D+Session /strings /collections /procs /threads /slots
      /classes/Session /objects/#{session} /graph/#{session} /search?q=Sess].map { |path| "/heaps/1#{path}" }
    location = ask(app, "/malloc/1.json").json[:rows].first[:location]
    line = "/malloc/1/line?#{URI.encode_www_form(at: location)}"
    others = %w[/heaps /diff?a=1&b=2 /diff/objects?a=1&b=2 /diff/flame?a=1&b=2 /diff/interface?a=1&b=2
      /verdict?dumps=1,2 /library /live /live/memory /live/agent /live/requests
      /tracked/1 /tracked/1/flame /tracked/2/diff?before=1 /boots/1 /boots/1/flame /traces/1
      /traces/1/requests/2 /malloc/1 /malloc/1/flame]
    [*of_heap, line, *others]
  end

  def page_of(address)
    Memprof::Web::Router.standard.find("GET", address[/[^?]*/]).page.name.split("::").last
  end

  def drawn?(address, drawn) = drawn.include?(page_of(address)) || address.include?("by=size")

  # The number of rows of each table.
  def tables(html)
    html.scan(%r{<table><thead>.*?</tbody>}m).map { |table| table[/<tbody>.*/m].scan("<tr>").size }
  end

  def as(format, address, **query)
    path, params = address.split("?", 2)
    params = [params, (URI.encode_www_form(query) unless query.empty?)].compact.join("&")
    ask(app, "#{path.chomp("/")}.#{format}#{"?#{params}" unless params.empty?}")
  end

  def rows(address, **query) = CSV.parse(as("csv", address, **query).body, headers: true)

  # The exports that the menu of a page offers.
  def offered(html)
    menu = html[%r{<details class="exports">.*?</details>}m].to_s
    menu.scan(/<a href="([^"]*)"/).flatten.map { |target| WebBrowser.unescape(target) }
  end

  def ending(targets, format) = targets.grep(/\.#{format}(\?|\z)/).grep_v(/[?&]each=/)

  it "knows every page" do
    pages = Memprof::Web::Page.all.map { |page| page.name.to_s.split("::").last }
    missing = pages - addresses.map { |address| page_of(address) } - elsewhere
    expect(missing.reject(&:empty?)).to eq([])
  end

  it "is offered by every page, with the tables of the page" do
    addresses.each do |address|
      html = ask(app, address)
      expect(html.status).to eq(200), address
      targets = offered(html.body)
      expect(ending(targets, "json").size).to eq(1), address
      expect(ending(targets, "md").size).to eq(1), address
      expect(ending(targets, "svg").any?).to eq(drawn?(address, drawn)), address
      parsed = ending(targets, "csv").map { |target| CSV.parse(ask(app, target).body, headers: true) }
      expect(parsed.map(&:size)).to include(*tables(html.body)), address unless address.include?("live")
      expect(parsed).to all(satisfy { |table| table.headers.uniq == table.headers }), address
      expect(as("csv", address).status).to eq(parsed.empty? ? 404 : 200), address
    end
  end

  it "draws pictures that other viewers read" do
    pictures = addresses.flat_map { |address| ending(offered(ask(app, address).body), "svg") }
    expect(pictures.size).to be >= drawn.size
    pictures.each do |target|
      answer = ask(app, target)
      root = REXML::Document.new(answer.body).root
      expect([root.name, root.namespace]).to eq(["svg", "http://www.w3.org/2000/svg"]), target
      expect(root.attributes["width"].to_f * root.attributes["height"].to_f).to be_positive, target
      expect(answer.body).not_to match(/var\(|hsl\(|href=|data-|@media/), target
      expect(answer.headers).to include("content-type" => "image/svg+xml",
        "content-disposition" => /\Aattachment; filename="[\w.-]+\.svg"\z/), target
      styles = REXML::XPath.match(root, "//*[local-name() = 'style']").map(&:text).join
      boxes = REXML::XPath.match(root, "//*[@class]").flat_map { |node| node.attributes["class"].split }
      expect(boxes.uniq.count { |name| styles.include?(".#{name}") }).to be_positive, target
    end
  end

  it "has exact numbers" do
    expected = heap.ask(:top, where: "class = Session", limit: 50)[:objects]
    table = rows("/heaps/1/objects?where=class+%3D+Session")
    expect(table.map { |row| [row["retained"].to_i, row["size"].to_i, row["address"]] })
      .to eq(expected.map { |row| row.values_at(:retained, :size, :address) })
    expect(table.first["site"]).to eq("#{expected.first[:site][:file]}:27 in fetch")
    groups = heap.histogram(by: :class, limit: 50)[:rows]
    expect(rows("/heaps/1/groups").map { |row| row.values_at("class", "count", "retained") })
      .to eq(groups.map { |row| [row[:key], row[:count].to_s, row[:retained].to_s] })
    changes = ask(app, "/diff.json?a=1&b=2").json[:rows][:rows]
    expect(rows("/diff?a=1&b=2", table: 2).map { |row| row["growth"].to_i })
      .to eq(changes.map { |row| row[:reachable][:size] })
    lines = ask(app, "/malloc/1.json").json[:rows]
    expect(rows("/malloc/1").map { |row| row["peak_bytes"].to_i }).to eq(lines.map { |row| row[:peak_bytes] })
  end

  it "has all rows of a list with several pages, if asked" do
    whole = offered(ask(app, "/heaps/1/objects?where=class+%3D+Session&page=3").body).grep(/each=1000\b/)
    expect(whole.size).to eq(1)
    expect(CSV.parse(ask(app, whole.first).body, headers: true).size).to eq(1000)
    expect(ask(app, "/heaps/1/objects.csv?each=10001").status).to eq(400)
    expect(rows("/heaps/1/objects?each=7&page=2").size).to eq(7)
    expect(as("csv", "/malloc/1", each: 1).body.lines.size).to eq(2)
  end

  it "quotes what a spreadsheet would execute, and leaves numbers alone" do
    view = Memprof::Web::View.new(nil, nil, nil)
    names = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", " =1", "a,\"b\"", "plain"]
    rows = names.map { |name| { name: name, growth: -5, least: 1.5 } }
    table = Memprof::Web::Helpers::Table.new(view, rows)
      .columns(:name, :growth, :least)
    lines = CSV.parse(table.to_csv, headers: true)
    expect(lines.map { |row| row["name"] }).to eq([*names.first(7).map { |name| "'#{name}" }, *names.last(2)])
    expect(table.to_csv).to include(%("'=1+1",-5,1.5\n))
    expect(lines.map { |row| row["growth"] }.uniq).to eq(["-5"])
  end

  it "answers errors in words" do
    expect(as("csv", "/heaps/1/objects", where: "x y").status).to eq(400)
    expect(as("csv", "/heaps/1/objects", where: "x y").headers["content-type"]).to start_with("text/plain")
    expect([as("svg", "/heaps/1/slots").status, as("csv", "/heaps/1/slots", table: 2).body])
      .to eq([404, "this page has 1 table\n"])
    expect(as("md", "/heaps/9").status).to eq(404)
    own = { "Sec-Fetch-Site" => "same-origin" }
    expect(ask(app, "/live/tracking/stop.md", method: "POST", headers: own).status).to eq(404)
    expect(ask(app, "/malloc.csv").location).to eq("/malloc/1.csv")
  end

  it "is Markdown with the page's tables and its command" do
    addresses.each do |address|
      text = as("md", address).body
      expect(text[/\A.*/]).to start_with("# "), address
      # Nothing is markup, except in code.
      prose = text.gsub(/^```.*?^```/m, "").gsub(/(`+) ?.*?\1/, "")
      expect(prose.lines.grep(/[<>\[\]*@#!]|&\w+;/).grep_v(/\A#+ [^<>\[\]*@!]*$/)).to eq([]), address
    end
    text = as("md", "/heaps/1/leaks").body
    expect(text).to include("## 1. 1,000 Session instances retain", "- Allocated at: `",
      "Session.new(visitor)\n", "\n`memprof leaks #{cache_dump}`\n")
    sizes = as("md", "/heaps/1/slots").body.scan(/^\| (\d+) B \|/).flatten
    expect(sizes).to eq(rows("/heaps/1/slots").map { |row| row["slot_size"] })
  end

  # The command line that a page shows, as a shell reads it.
  def command(address)
    found = ask(app, address).body[%r{In a terminal: <code>(.*?)</code>}m, 1]
    found && Shellwords.split(WebBrowser.unescape(found)).drop(1)
  end

  it "shows the same question for a terminal, on each page of a heap" do
    addresses.grep(%r{\A/(?:heaps/|diff|verdict|malloc|traces)}).each do |address|
      verb, *arguments = command(address)
      expect(verb).not_to be_nil, address
      out = StringIO.new
      terminal = Memprof::CLI::Terminal.new(out: out, err: StringIO.new)
      status = Memprof::CLI.command(verb, terminal).start(["--json", *arguments])
      expect([status, JSON.parse(out.string)]).to match([0, be_truthy]), address
    end
  end

  it "quotes the names of files and queries" do
    page = Memprof::Web::Page.new(nil)
    line = page.send(:command_line, "top", "-it's a\n.memprof", where: "class = 'A'", procs: true, sort: nil)
    expect(run_bash(line)).to eq(%W[memprof top --where class\ =\ 'A' --procs ./-it's\ a\n.memprof])
  end

  def run_bash(line)
    program = 'p(["memprof", *ARGV])'
    shell = "memprof() { #{Shellwords.join([RbConfig.ruby, "--disable-gems", "-e", program, "--"])} \"$@\"; }"
    JSON.parse(IO.popen(["bash", "-c", "#{shell}\n#{line}"], &:read))
  end
end
