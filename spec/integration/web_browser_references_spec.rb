# frozen_string_literal: true

# The page of an object in a Chromium: what it refers to, and what refers to it, opened row by row.
RSpec.describe "references of an object in a browser" do
  include PageReader
  include_context "with a browser"

  after { expect(@tab.watch.forget).to eq([]) if @tab }

  before { tab.go("#{@stage.dumps}/heaps/2/objects?where=#{where}") && tab.follow("td a.object") }

  let(:where) { "class+%3D+Page" }

  def wait_for_rows = tab.wait("have rows", "!document.querySelector('[aria-busy]')")

  # The button at a row, by the name of its object.
  def opener(section, name)
    "(#{element("##{section} tbody tr", name)}.querySelector('button'))"
  end

  def open(section, name)
    tab.click(opener(section, name))
    wait_for_rows
  end

  def expanded(section, name) = tab.evaluate("#{opener(section, name)}.getAttribute('aria-expanded')")

  # Objects of the rows that are to be seen, each with its level.
  def rows(section)
    tab.evaluate(<<~JS)
      [...document.querySelectorAll("##{section} tbody tr:not([hidden])")]
        .map((row) => [Number(row.ariaLevel), row.querySelector(".object")?.textContent ?? row.textContent])
    JS
  end

  def focused = tab.evaluate("document.activeElement.closest('tr')?.querySelector('.object').textContent")

  it "are a tree of its referrers, up to the constant" do
    expect(rows("referrers")).to eq([[1, "Hash (300)"]])
    here = tab.path
    open("referrers", "/Hash \\(300\\)/")
    expect(rows("referrers")).to include([1, "Hash (300)"], [2, "class PageCache"])
    expect(texts("#referrers tr[aria-level='2'] .label")).to include("PAGES")
    states = ["/Hash/", "/class PageCache/"].map { |name| expanded("referrers", name) }
    expect(states).to eq(%w[true false])
    open("referrers", "/class PageCache/")
    expect(rows("referrers").assoc(3)).to eq([3, "class Object"])
    expect([tab.path, tab.evaluate("document.querySelector('#referrers [role=treegrid]') != null")])
      .to eq([here, true])
    expect(tab.follow(link("/^class PageCache$/", "#referrers"))).to eq(200)
    expect(texts("h1")).to eq(["class PageCache"])
  end

  it "close again with all that is under them, and open as they were" do
    open("referrers", "/Hash/")
    open("referrers", "/class PageCache/")
    before = rows("referrers")
    open("referrers", "/Hash/")
    expect(rows("referrers")).to eq([[1, "Hash (300)"]])
    asked = tab.watch.requests.size
    open("referrers", "/Hash/")
    expect([rows("referrers"), tab.watch.requests.size]).to eq([before, asked])
  end

  it "obey the arrows" do
    tab.evaluate("#{opener("referrers", "/Hash/")}.focus()")
    tab.press("ArrowRight")
    tab.wait("open", "document.querySelectorAll('#referrers tbody tr').length > 1")
    wait_for_rows
    names = rows("referrers").map(&:last)
    places = %w[ArrowRight ArrowDown ArrowUp ArrowLeft].map do |key|
      tab.press(key)
      focused
    end
    expect(places).to eq([names[1], names[2], names[1], names[0]])
    tab.press("ArrowLeft")
    expect([rows("referrers").size, expanded("referrers", "/Hash/")]).to eq([1, "false"])
    tab.press("?")
    expect(texts("#help dt")).to include("→, ←")
  end

  it "end where nothing follows" do
    open("references", "/products/")
    expect(rows("references")[1]).to eq([2, "No outgoing references."])
  end

  it "are links alone where scripts do not run" do
    tab.ask("Emulation.setScriptExecutionDisabled", value: true)
    tab.go("#{@stage.dumps}#{tab.path}")
    expect(tab.evaluate("document.querySelectorAll('#referrers button').length")).to eq(0)
    expect(tab.follow(link("/Hash/", "#referrers"))).to eq(200)
  ensure
    tab.ask("Emulation.setScriptExecutionDisabled", value: false)
  end

  context "when there are many" do
    let(:where) { "type+%3D+CLASS+and+name+%3D+PageCache" }

    it "come in parts" do
      open("references", "/Hash \\(300\\)/")
      inner = -> { rows("references").count { |level, _| level == 2 } }
      expect([inner.call, texts("#references .remark")]).to eq([26, ["Show more 25 of 600 shown"]])
      tab.click("#references .remark button")
      tab.wait("have more", "/50 of/.test(document.querySelector('#references .remark').textContent)")
      expect([inner.call, texts("#references .remark").size]).to eq([51, 1])
      links = "[...document.querySelectorAll('#references tr[aria-level=\"2\"] .object')]"
      targets = "#{links}.map((link) => link.href)"
      expect(tab.evaluate(targets).uniq.size).to eq(50)
      expect(tab.evaluate("document.activeElement.closest('tr').ariaLevel")).to eq("2")
    end

    it "do not go in circles" do
      open("referrers", "/class #<Class:PageCache>/")
      open("referrers", "/<ment> Class#fetch/")
      again = texts("#referrers tr[aria-level='3']:has(.again) .object")
      expect(again).to eq(["class #<Class:PageCache>"])
      expect(texts("#referrers tr[aria-level='3']:has(.again) button")).to eq([])
    end
  end

  it "show what is wrong when the heap is gone" do
    tab.evaluate("window.fetch = async () => new Response('', { status: 500, statusText: 'Broken' })")
    tab.click(opener("referrers", "/Hash/"))
    tab.wait("announce the result", "document.querySelector('#referrers output').textContent !== ''")
    expect(texts("#referrers output")).to eq(["Cannot load the rows: 500 Broken"])
    expect([rows("referrers").size, expanded("referrers", "/Hash/")]).to eq([1, "false"])
  end
end
