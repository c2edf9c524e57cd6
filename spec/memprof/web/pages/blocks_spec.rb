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

  it "exports its tables and pictures, and shows the command" do
    { "blocks" => 1, "blocks/list?set=leaked" => nil }.each do |path, pictures|
      body = page("/heaps/1/#{path}").body
      links = body.scan(/href="([^"]*\.csv[^"]*)"/).flatten.map { |target| WebBrowser.unescape(target) }
      expect(links).not_to be_empty
      links.each { |target| expect(CSV.parse(ask(app, target).body, headers: true).size).to be_positive }
      expect(body.scan(%r{/blocks[\w/]*\.svg}).size).to eq(pictures.to_i), path
    end
    listed = CSV.parse(ask(app, "/heaps/1/blocks/list.csv?set=leaked&min=2048").body, headers: true)
    list = ask(app, "/heaps/1/blocks/list?set=leaked&min=2048").body
    command = list[%r{In a terminal: <code>(.*?)</code>}, 1]
    stdout, = run_memprof(*Shellwords.split(command).drop(1))
    expect(listed.map { |row| row["block"] || row["address"] })
      .to all(satisfy { |address| stdout.include?(address.delete_prefix("0x")) })
    expect(command).to end_with("list leaked /minsize 800")
  end

  it "shows where the memory went, from the overview on" do
    expect(page("/heaps/1/").links).to include("/heaps/1/blocks", "/heaps/1/blocks/list?set=leaked")
    blocks = page("/heaps/1/blocks")
    expect(blocks.body).to include("Leaked", "main arena", "leaked blocks: ")
    expect(blocks.body).to include(%(aria-current="page">Blocks</a>))
    data = json("/heaps/1/blocks")
    expect(data[:overview].slice(:used, :leaked)).to eq(core.overview.slice(:used, :leaked))
    expect(data[:parts].sum { |part| part[:bytes] }).to be_within(data[:overview][:writable] / 100)
      .of(data[:overview][:writable])
    expect(data[:leaked][:rows].map { |row| row[:count] }).to include(be_between(95, 100))
    links = blocks.links.grep(%r{/blocks/})
    expect(links.size).to be > 20
    links.uniq.each { |target| page(target) }
  end

  it "has blocks as objects if they are asked for" do
    with_blocks = web_app(@core, opening: { blocks: true })
    rows = ask(with_blocks, "/heaps/1/groups.json?by=type").json[:rows]
    expect(rows.find { |row| row[:key] == "block" }[:count]).to eq(core.count(:used)[:count])
  end

  it "counts on the list what links to it say" do
    json("/heaps/1/blocks")[:leaked][:rows].each do |row|
      group = { set: "leaked", like: row[:signature], min: row[:size], max: row[:size] }.compact
      listed = json("/heaps/1/blocks/list?#{URI.encode_www_form(group)}")
      expect(listed[:total]).to eq(row.slice(:count, :bytes))
    end
  end

  it "lists blocks of a set, the largest first, in pages" do
    found = "set=owned&like=%25RubyString&min=20000&max=20100"
    first = json("/heaps/1/blocks/list?#{found}")
    expect(first[:total][:count]).to be_between(60, 62)
    expect(first[:blocks].size).to eq(50)
    sizes = first[:blocks].map { |block| block[:size] }
    expect(sizes).to eq(sizes.sort.reverse)
    expect(first[:blocks].map { |block| block[:head] }).to include(start_with("<b>kept 5"))
    expect(first[:blocks].first).to include(state: "anchored", signature: "%RubyString")
    expect(first[:blocks].first[:owner]).to include(type: "STRING", text: start_with("String \"<b>kept "))
    second = json("/heaps/1/blocks/list?#{found}&page=2")
    expect(second[:blocks].size).to eq(first[:total][:count] - 50)
    body = page("/heaps/1/blocks/list?#{found}").body
    expect(body).to include("&lt;b&gt;kept", %(rel="next"), %(value="%RubyString"))
    expect(json("/heaps/1/blocks/list?set=leaked&min=1GiB")[:blocks]).to eq([])
    expect(ask(app, "/heaps/1/blocks/list?set=leaked&page=1000").status).to eq(404)
  end

  it "shows a block: contents, references, and why it is still there" do
    leaked = address(:unreferenced, 3100)
    data = json("/heaps/1/blocks/at/#{leaked}")
    expect(data).to include(state: "unreferenced", anchor: nil, incoming: [], outgoing_count: 1)
    expect(data[:outgoing].first).to include(size: be_between(3000, 3016), state: "leaked")
    expect(data[:contents].first).to end_with("<script>")
    shown = page("/heaps/1/blocks/at/#{leaked}")
    expect(shown.body).to include("Nothing references it", "&lt;script&gt;")
    expect(shown.links).to include("/heaps/1/blocks/at/#{data[:outgoing].first[:address]}")
    inner = json("/heaps/1/blocks/at/#{data[:outgoing].first[:address]}")
    expect(inner[:contents]).to match([/: +0 +0 +\.{16}\z/, "... 1008 bytes more are zero"])
    expect(inner[:incoming].map { |step| step[:address] }).to eq([leaked])
    kept = json("/heaps/1/blocks/at/#{address(:owned, 20_000)}")
    expect(kept[:anchor]).to include(anchor: String)
    expect(kept[:chain].map { |step| step[:text] }).to include(start_with('String "<b>kept'))
    # What anchors it is linked, too.
    owner = "/heaps/1/objects/#{kept[:owner][:object]}"
    expect(page("/heaps/1/blocks/at/#{kept[:start]}").links).to include(owner)
    back = page(owner).links.grep(/set=outgoing/).first
    expect(json(back)[:blocks].map { |block| block[:address] }).to include(kept[:start])
    found = ask(app, "/heaps/1/search?q=#{kept[:start]}").location
    expect(found).to end_with("/heaps/1/blocks/at/#{kept[:start]}")
  end

  it "reads the file again when it was closed" do
    before = json("/heaps/1/blocks/list?set=leaked")
    app.heaps.close(1)
    expect(json("/heaps/1/blocks/list?set=leaked")).to eq(before)
    app.heaps.close(1)
    opened = nil
    opened = ask(app, "/heaps/1/") until opened && opened.status != 202
    expect(opened.links).to include("/heaps/1/blocks")
  end

  it "says what is wrong" do
    {
      "list?set=lost" => [400, "invalid set"], "list?set=leaked&min=many" => [400, "invalid min"],
      "list?of=12" => [400, "invalid of"], "list?of=0x8" => [400, "0x8 is in no block"],
      "at/0x8" => [404, "no block at address 0x8"], "at/x" => [404, "no block at address x"]
    }.each do |target, (status, message)|
      answer = ask(app, "/heaps/1/blocks/#{target}")
      expect([answer.status, WebBrowser.unescape(answer.body)]).to match([status, include(message)])
    end
  end

  it "has none for a dump" do
    dump = web_app(cache_dump)
    expect(ask(dump, "/heaps/1/").body).not_to include("/blocks")
    answer = ask(dump, "/heaps/1/blocks")
    expect([answer.status, answer.body]).to match([404, include("has no blocks of malloc; only core files")])
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
    expect(blocks.body).not_to match(/none is leaked|No leaked blocks|0 used/)
    list = ask(other, "/heaps/1/blocks/list?set=leaked")
    expect([list.status, list.body]).to match([400, include(reason)])
  end

  it "shows the blocks of a program that is no Ruby" do
    plain = core_of("sh", "-c", "echo ready; read line")
    heaps = Memprof::Web::Heaps.new
    heaps.add(plain)
    other = Memprof::Web.new(heaps: heaps, gate: WebBrowser::Open.new)
    answer = ask(other, "/heaps/1/") until answer && answer.status != 202
    expect([answer.status, answer.location]).to eq([303, "/heaps/1/blocks"])
    blocks = ask(other, "/heaps/1/blocks")
    expect([blocks.status, blocks.body]).to match([200, include("No Ruby objects.")])
    block = ask(other, blocks.links.grep(%r{/blocks/at/}).first)
    expect(block.status).to eq(200)
  end
end
