# frozen_string_literal: true

require "json"

# What somebody does with the pages: a Chromium that clicks, types and presses keys, and dumps of a Rails app
# that leaks (spec/fixtures/apps/leaky_rails).
RSpec.describe "memprof web in a browser" do
  include PageReader
  include_context "with a browser"

  after { expect(@tab.watch.forget).to eq([]) if @tab }

  leak = LeakyRails.source("page")

  def visit(path) = tab.go("#{@stage.dumps}#{path}")

  def focused(property = "textContent") = tab.evaluate("document.activeElement.#{property}")

  # Sizes of a column, in bytes.
  def sizes(column)
    units = { "B" => 1, "KiB" => 1024, "MiB" => 1024**2 }
    texts("tbody td:nth-child(#{column})").map { |text| text.to_f * units.fetch(text[/[A-Za-z]+/]) }
  end

  {
    "the finding of the overview" => [%w[main .findings /^300\ Page/]],
    "a box of the overview" => [%w[.treemap /^300\ Page/], %w[.lead /^300/], %w[main table /^Page/]],
    "the page of leaks" =>
      [%w[nav.menu /Leaks/], %w[main .place /app\\.rb/], %w[main td:nth-last-child(4) /^Page/]],
    "the classes of the overview" => [%w[main table /^Page$/], %w[main table /^300$/], %w[main table /^Page/]]
  }.each do |way, clicks|
    it "shows the line that leaks after #{clicks.size} clicks: by #{way}" do
      visit("/heaps/2/")
      clicks.each do |*within, pattern|
        selector = within.join(" ")
        link = selector.end_with?(".place") ? element(selector, pattern) : link(pattern, selector)
        expect(tab.follow(link)).to eq(200), "#{selector} #{pattern}"
      end
      expect(texts(".source mark")).to eq(["#{LeakyRails.line("page")}  #{leak}"])
    end
  end

  it "obeys the keys that its help lists" do
    visit("/heaps/2/objects?where=class+%3D+Page")
    tab.press("?")
    expect(texts("#help dt")).to eq(["/", "j, k", "Enter", "?"])
    expect(tab.evaluate("document.querySelector('#help').checkVisibility()")).to be(true)
    tab.press("?")
    expect(tab.evaluate("document.querySelector('#help').hidden")).to be(true)
    tab.press("?")
    tab.press("Escape")
    expect(tab.evaluate("document.querySelector('#help').hidden")).to be(true)
    chosen = "[...document.querySelectorAll('tbody tr')].findIndex((row) => row.matches('.chosen'))"
    places = ["j", "j", "j", "k"].map do |key|
      tab.press(key)
      tab.evaluate(chosen)
    end
    expect(places).to eq([0, 1, 2, 1])
    target = tab.evaluate("document.querySelector('tbody tr:nth-child(2) .object').getAttribute('href')")
    tab.following("by Enter") { tab.press("Enter") }
    expect([tab.path, target]).to all(match(%r{\A/heaps/2/objects/0x\h+\z}))
    expect(tab.path).to eq(target)
    tab.press("/")
    expect(focused("name")).to eq("q")
    tab.type("PageCache")
    tab.press("?") # a letter like others in a field
    expect(focused("value")).to eq("PageCache?")
    tab.press("Escape")
    expect(focused("tagName")).to eq("BODY")
  end

  it "goes to what is searched for" do
    visit("/heaps/2/")
    search_for("PageCache")
    expect(tab.path).to eq("/heaps/2/classes/PageCache")
    tab.click("input[type=search]")
    tab.type("app.rb:#{LeakyRails.line("page")}")
    tab.following("by Enter") { tab.press("Enter") }
    expect(texts("tbody .place, tbody a").join).to match(/app\.rb:#{LeakyRails.line("page")}/)
  end

  it "sorts, filters and groups" do
    visit("/heaps/2/objects?where=type+%3D+STRING")
    tab.follow(link("/^Shallow size$/", "thead"))
    expect(tab.path).to eq("/heaps/2/objects?where=type+%3D+STRING&sort=size")
    expect(texts("th[aria-sort]")).to eq(["Shallow size"])
    expect(sizes(3).size).to be > 20
    expect(sizes(3)).to eq(sizes(3).sort.reverse)
    fill("input[name=where]", "class = Page")
    tab.following("by Enter") { tab.press("Enter") }
    expect(tab.path).to eq("/heaps/2/objects?sort=size&where=class+%3D+Page")
    expect(texts("main .lead").first).to match(/\A300 objects match/)
    tab.follow(link("/^line$/", ".choices"))
    expect(texts("tbody .place, tbody a").join(" ")).to include("app.rb:#{LeakyRails.line("page")}")
    tab.evaluate("document.querySelector('select[name=by]').value = 'file'")
    tab.evaluate("document.querySelector('select[name=then]').value = 'class'")
    tab.follow(element("button", "/Show/"))
    expect(tab.path).to eq("/heaps/2/groups?by=file&then=class&where=class+%3D+Page")
    expect(texts(".level1")).to eq(["Page"])
  end

  it "turns pages of a list, and takes another threshold" do
    visit("/heaps/2/objects")
    first = texts("td.address")
    tab.follow(link("/^Next$/", ".pager"))
    expect(texts("td.address") & first).to eq([])
    visit("/heaps/2/leaks")
    fill("input[name=threshold]", "3")
    tab.follow(element("main button", "/Show/"))
    expect(texts(".card h2").join).to match(/300 Page instances retain/)
  end

  it "says where a query is wrong" do
    expect(visit("/heaps/2/objects?where=class+%3D%3D%3D+Page")).to eq(400)
    expect(texts("main").first).to match(/class === Page/)
    expect(tab.watch.forget).to all(match(/400/))
  end

  it "zooms, moves and searches in the flame graph" do
    visit("/heaps/2/flame")
    tab.click(element(".icicle a", "/^Page@/"))
    tab.wait("zoom", "document.querySelectorAll('.icicle .above').length === 2")
    expect(texts(".flame-detail").first).to match(/MiB, [\d.]+ %; 300 objects of .*root › Hash › Page@/)
    expect(texts(".flame-axis span")).to match(["0 B", *[match(/\A[\d.]+ [KM]iB\z/)] * 4])
    part = "document.querySelector('.flame-map:not([hidden]) rect').getAttribute('width')"
    expect(tab.evaluate(part).to_f).to be_between(1, 99)
    ["Escape", "Escape"].each { |key| tab.press(key) }
    tab.wait("go up", "document.querySelectorAll('.icicle .above').length === 0")
    tab.evaluate("document.querySelector('.icicle a').focus()")
    ["ArrowDown", "ArrowRight", "ArrowLeft", "ArrowDown"].each do |key|
      before = focused("dataset.frame")
      tab.press(key)
      tab.wait("move by #{key}", "document.activeElement.dataset.frame !== #{JSON.generate(before)}")
    end
    expect(focused).to match(/^Page@/)
    tab.click(".flame-search")
    tab.type("String@html")
    tab.wait("find", "/ in 1 places$/.test(document.querySelector('.flame-found').textContent)")
    tab.press("Escape")
    tab.click(element(".icicle a", "/^Page@/"))
    tab.wait("zoom", "document.querySelectorAll('.icicle .above').length === 2")
    tab.click(".flame-reset")
    tab.wait("go back", "document.querySelectorAll('.icicle .above').length === 0")
    tab.evaluate("#{element(".icicle a", "/^Page@/")}.focus()")
    tab.following("by o") { tab.press("o") }
    expect(tab.path).to eq("/heaps/2/classes/Page")
  end

  it "shows flame graphs again as their addresses say" do
    visit("/heaps/2/flame")
    tab.click(element(".icicle a", "/^Page@/"))
    tab.wait("zoom", "document.querySelectorAll('.icicle .above').length === 2")
    tab.click(".flame-search")
    tab.type("html")
    tab.wait("write the search", "location.search.includes('search=html')")
    address = tab.path
    boxes = "[...document.querySelectorAll('.icicle a')].map((a) => a.className.baseVal + a.textContent)"
    seen = tab.evaluate(boxes)
    visit(address)
    tab.wait("zoom", "document.querySelectorAll('.icicle .found').length > 0")
    expect(tab.evaluate(boxes)).to eq(seen)
    tab.click("[data-view=sandwich]")
    tab.wait("list", "document.querySelectorAll('.flame-functions tbody tr').length > 0")
    expect(texts(".flame-functions td.name")).to all(match(/html/i))
    tab.click(element(".flame-functions td a", "/^String@html$/"))
    names = "[...document.querySelectorAll('.icicle a')].map((box) => box.textContent.split('\\n')[0])"
    tab.wait("draw", "#{names}.length > 2")
    expect(tab.evaluate(names)).to match_array(["Hash", "Page@[]", "String@html"])
    2.times { tab.evaluate("history.back()") }
    tab.wait("go back", "document.querySelectorAll('.icicle .above').length === 2")
    expect([tab.path, tab.evaluate(boxes)]).to eq([address, seen])
  end

  it "expands the picture of references, and saves it" do
    visit("/heaps/2/leaks")
    tab.follow(link("/^Page/", ".card p"))
    tab.follow(link("/^Reference graph/"))
    nodes = texts(".graph .node").size
    tab.follow(element(".graph .more:not(.all)", "/\\+/"))
    expect(texts(".graph .node").size).to be > nodes
    files = ["GML", "DOT"].map do |word|
      target = tab.evaluate("#{link("/^#{word}$/")}.href")
      tab.evaluate("fetch(#{JSON.generate(target)}).then((answer) => answer.text())")
    end
    expect(files).to match([/\AGraph|\ACreator/i, /\Adigraph/])
  end

  it "opens and closes branches of the tree" do
    visit("/heaps/2/tree")
    opened = "document.querySelector('.tree details').open"
    [true, false].each do |state|
      tab.click(".tree summary .number")
      tab.wait("open a branch", "#{opened} === #{state}")
    end
    tab.follow(link("/Merge objects by class/"))
    expect(texts(".tree summary").join).to match(/300 Page/)
  end

  it "compares dumps, and marks where it is" do
    visit("/heaps/1/")
    tab.follow(link("/Compare/", "header"))
    tab.follow(element("main button", "/Compare/"))
    expect(texts("main h1")).to eq(["before.memprof → after.memprof"])
    expect(texts("header [aria-current]")).to include("Compare")
    tab.follow(link("/^new$/", ".legend"))
    expect(texts("tbody .place, tbody a").join).to include("app.rb:")
    { "/traces/1" => "Requests", "/tracked/1/flame" => "Allocations", "/heaps/2/classes/Page" => "Classes" }
      .each do |path, mark|
        visit(path)
        expect(texts("nav.menu [aria-current]")).to eq([mark])
      end
  end
end
