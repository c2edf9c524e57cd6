# frozen_string_literal: true

require "csv"
require "memprof/web"
require "rack"
require "shellwords"
require "tmpdir"

RSpec.describe "Memprof::Web, pages of blocks" do
  include WebBrowser

  before(:all) do
    skip CoreFiles.obstacle if CoreFiles.obstacle
    skip "this Ruby has no fiddle" unless run_ruby('require "fiddle"').success?

    @directory = Dir.mktmpdir
    @core = core_of(RbConfig.ruby, "-e", CoreFiles::LEAKING)
  end

  after(:all) { FileUtils.remove_entry(@directory) if @directory }

  def core_of(*command)
    CoreFiles.write(@directory, *command) || skip("gcore may not trace")
  end

  let(:app) { web_app(@core) }
  let(:core) { Memprof::Core.open(@core) }

  def json(target) = ask(app, target.sub(/(?=\?|\z)/, ".json")).json

  def page(target)
    answer = ask(app, target)
    expect(answer.status).to eq(200), answer.body
    expect(answer.body.bytesize).to be < 100 * 1024
    expect(answer.body).not_to match(/<b>kept|<script>/)
    answer
  end

  def address(set, size) = core.each(set, min_size: size, max_size: size + 15).first[:address]

  def objects(where) = json("/heaps/1/objects?#{URI.encode_www_form(where: where)}")

  it "exports its tables and pictures, and shows the command" do
    body = page("/heaps/1/blocks").body
    links = body.scan(/href="([^"]*\.csv[^"]*)"/).flatten.map { |target| WebBrowser.unescape(target) }
    expect(links.size).to be > 2
    links.each { |target| expect(CSV.parse(ask(app, target).body, headers: true).size).to be_positive }
    expect(body.scan(%r{/blocks[\w/]*\.svg}).size).to eq(1)
    query = URI.encode_www_form(where: "leaked and size >= 2048")
    listed = CSV.parse(ask(app, "/heaps/1/objects.csv?#{query}").body, headers: true)
    command = ask(app, "/heaps/1/objects?#{query}").body[%r{In a terminal: <code>(.*?)</code>}, 1]
    expect(command).to start_with("memprof top --blocks --where")
    words = Shellwords.split(WebBrowser.unescape(command)).drop(1)
    stdout, = run_memprof(*words, "--format", "json", "--limit", "500")
    addresses = listed.map { |row| row["address"] }
    expect(addresses.size).to eq(50)
    expect(JSON.parse(stdout)["objects"].map { |row| row["address"] }).to include(*addresses)
  end

  it "shows where the memory went, from the overview on" do
    expect(page("/heaps/1/").links).to include("/heaps/1/blocks", "/heaps/1/objects?where=leaked")
    blocks = page("/heaps/1/blocks")
    expect(blocks.body).to include("Leaked", "main arena", "leaked blocks: ")
    expect(blocks.body).to include(%(aria-current="page">Blocks</a>))
    data = json("/heaps/1/blocks")
    expect(data[:overview].slice(:used, :leaked)).to eq(core.overview.slice(:used, :leaked))
    expect(data[:parts].sum { |part| part[:bytes] }).to be_within(data[:overview][:writable] / 100)
      .of(data[:overview][:writable])
    links = blocks.links.grep(/where=/)
    expect(links.size).to be > 5
    links.uniq.each { |target| page(target) }
  end

  it "counts on the list what links to it say" do
    blocks = json("/heaps/1/blocks")
    rows = blocks[:leaked][:rows].map { |row| row.merge(where: "leaked and (#{row[:where]})") }
    rows += blocks[:parts].select { |part| part[:where] }.map { |part| part.merge(size: part[:bytes]) }
    expect(rows.size).to be >= 5
    rows.each do |row|
      listed = objects(row[:where])
      expect([listed[:count], listed[:size]]).to eq(row.values_at(:count, :size)), row.inspect
    end
    counted = json("/heaps/1/groups?by=type")[:rows].find { |row| row[:key] == "block" }
    expect(counted[:count]).to eq(core.count(:used)[:count])
    expect(objects("state in (free, cached)")[:count]).to eq(core.count(:free)[:count])
  end

  it "has the slots of Ruby's pages alone" do
    plain, = run_memprof("slots", "--json", @core)
    known = JSON.parse(plain).values_at("page_size", "pages", "slots", "used")
    expect(json("/heaps/1/slots").values_at(:page_size, :pages, :slots, :used)).to eq(known)
    expect(objects("type = BLOCK and slot > 0")[:count]).to eq(0)
  end

  it "has the leaked blocks, and those of Strings" do
    # On Ruby 4.0, words of freed pointers lead to a quarter of those that others contain.
    expect(objects("leaked and size >= 3000 and size < 3016")[:count]).to be_between(70, 100)
    expect(objects("leaked and size >= 3100 and size < 3116")[:count]).to be_between(95, 100)
    strings = objects("type = STRING and length >= 20000 and length < 20100")
    expect(strings[:objects].map { |row| row[:retained] }).to all(be >= 20_000)
    found = objects("type = BLOCK and size >= 20000 and size < 20100 and reachable")
    expect(found[:count]).to be_between(60, 62)
    expect(objects("leaked and size > 1GiB")[:objects]).to eq([])
  end

  it "shows a block: contents, references, and why it is still there" do
    leaked = address(:unreferenced, 3100)
    data = json("/heaps/1/objects/#{leaked}")
    expect(data).to include(type: "block", leaked: true, unreachable: true)
    expect(data).to include(referrers: [], references_count: 1)
    expect(data[:references].first).to include(size: be_between(3000, 3016), type: "block")
    expect(data[:contents].first).to end_with("<script>")
    shown = page("/heaps/1/objects/#{leaked}")
    expect(shown.body).to include("Leaked by C code", "&lt;script&gt;")
    expect(shown.links).to include("/heaps/1/objects/#{data[:references].first[:address]}")
    inner = json("/heaps/1/objects/#{data[:references].first[:address]}")
    expect(inner[:contents]).to match([/: +0 +0 +\.{16}\z/, "... 1008 bytes more are zero"])
    expect(inner[:referrers].map { |row| row[:address] }).to eq([leaked])
    kept = json("/heaps/1/objects/#{address(:owned, 20_000)}")
    expect(kept[:path][:steps].map { |step| step[:text] }).to include(start_with('String "<b>kept'))
    owner = "/heaps/1/objects/#{core.describe(kept[:address])[:owner][:object]}"
    expect(page("/heaps/1/objects/#{kept[:address]}").links).to include(owner)
    expect(page(owner).links).to include("/heaps/1/objects/#{kept[:address]}")
    free = core.each(:free, min_size: 64).first[:address]
    expect(page("/heaps/1/objects/#{free}").body).to include("A free block of malloc.")
    %w[show path].each do |verb|
      stdout, = run_memprof(verb, "--blocks", @core, leaked)
      expect(stdout).to include("Leaked by C code")
    end
  end

  it "finds the block around an address" do
    leaked = address(:unreferenced, 3100)
    [0, 40].each do |offset|
      found = ask(app, "/heaps/1/search?q=0x#{(leaked.hex + offset).to_s(16)}").location
      expect(found).to end_with("/heaps/1/objects/#{leaked}")
    end
  end

  it "reads the file again when it was closed" do
    before = json("/heaps/1/blocks")
    app.heaps.close(1)
    opened = nil
    opened = ask(app, "/heaps/1/") until opened && opened.status != 202
    expect(opened.links).to include("/heaps/1/blocks")
    expect(json("/heaps/1/blocks")).to eq(before)
  end

  it "has none for a dump" do
    dump = web_app(cache_dump)
    expect(ask(dump, "/heaps/1/").body).not_to include("/blocks")
    answer = ask(dump, "/heaps/1/blocks")
    expect([answer.status, answer.body]).to match([404, include("is not a core file")])
  end

  it "does not count blocks of another allocator" do
    library = Dir["/usr/lib/{,*/}libjemalloc.so.2"].first or skip "jemalloc is not installed"
    heaps = Memprof::Web::Heaps.new
    core = core_of("env", "LD_PRELOAD=#{library}", RbConfig.ruby, "-e", CoreFiles::LEAKING)
    skip "glibc's malloc has an arena here, too" unless Memprof::Core.open(core).overview[:unknown]
    heaps.add(core)
    other = Memprof::Web.new(heaps: heaps, gate: WebBrowser::Open.new)
    overview = ask(other, "/heaps/1/") until overview && overview.status != 202
    reason = "the process uses jemalloc, whose blocks memprof cannot read"
    expect([overview.status, overview.body]).to match([200, include("Blocks of malloc: #{reason}.")])
    blocks = ask(other, "/heaps/1/blocks")
    expect([blocks.status, blocks.body]).to match([200, include("The process uses jemalloc, whose blocks")])
    expect(blocks.body).not_to match(/none is leaked|No leaked blocks|0 used|Leaked/)
  end

  it "shows the blocks of a program that is no Ruby" do
    plain = core_of("sh", "-c", "echo ready; read line")
    heaps = Memprof::Web::Heaps.new
    heaps.add(plain)
    other = Memprof::Web.new(heaps: heaps, gate: WebBrowser::Open.new)
    answer = ask(other, "/heaps/1/") until answer && answer.status != 202
    expect(answer.status).to eq(200)
    blocks = ask(other, "/heaps/1/blocks")
    expect([blocks.status, blocks.body]).to match([200, include("Arenas")])
    list = ask(other, "/heaps/1/objects?where=type+%3D+BLOCK")
    block = ask(other, list.links.grep(%r{/objects/0x}).first)
    expect([block.status, block.body]).to match([200, include("Contents")])
    expect(block.links).not_to include("/heaps/1/slots")
  end
end
