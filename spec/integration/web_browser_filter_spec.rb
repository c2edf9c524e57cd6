# frozen_string_literal: true

# Lists in a Chromium that follow what is typed into their filter.
RSpec.describe "a filter in a browser" do
  include PageReader
  include_context "with a browser"

  after { expect(@tab.watch.forget).to eq([]) if @tab }

  def visit(path) = tab.go("#{@stage.dumps}#{path}")

  # Types into the filter, and waits until the list is of that.
  def typed(text, name: "where")
    fill("input[name=#{name}]", text)
    listed(text, name)
  end

  def listed(text, name)
    search = "#{name}=#{URI.encode_www_form_component(text)}"
    tab.wait("have the list of #{text}", "location.search.includes(#{JSON.generate(search)})")
  end

  def focus = tab.evaluate("[document.activeElement.name, document.activeElement.selectionEnd]")

  it "is obeyed while it is typed, without a page of its own in the history" do
    visit("/heaps/2/objects?sort=size&page=2")
    before = [tab.watch.loads, tab.evaluate("history.length")]
    typed("class = Page")
    expect(texts("main .lead").first).to match(/\A300 objects match/)
    expect(texts("td .object").uniq).to eq(["Page"])
    expect(tab.path).to eq("/heaps/2/objects?sort=size&where=class+%3D+Page")
    expect(texts("main form output").first).to match(/\A300 objects match, 11\.7 KiB\./)
    expect([focus, tab.watch.loads, tab.evaluate("history.length")]).to eq([["where", 12], *before])
    typed("class = String")
    tab.follow(link("/^Next$/", ".pager"))
    expect(tab.path).to eq("/heaps/2/objects?sort=size&where=class+%3D+String&page=2")
    expect(tab.following("by going back") { tab.evaluate("history.back()") }).to eq(200)
    expect(texts("td .object")).to all(start_with("String "))
  end

  it "leaves the list unchanged while the query is incomplete" do
    visit("/heaps/2/groups?by=file&then=class")
    typed("class = Page")
    rows = texts("tbody tr")
    fill("input[name=where]", "class = Page and retaned")
    tab.wait("announce the result", "document.querySelector('input[name=where]').ariaInvalid === 'true'")
    expect([texts("tbody tr"), tab.path])
      .to eq([rows, "/heaps/2/groups?by=file&then=class&where=class+%3D+Page"])
    expect(tab.evaluate("document.querySelector('input[name=where]').title")).to include("retaned", "^^^^^^^")
    expect(tab.watch.forget).to all(match(/400/))
    typed("class = Page and retained > 1KiB")
    expect(tab.evaluate("document.querySelector('input[name=where]').ariaInvalid")).to eq("false")
    tab.following("by Enter") { tab.press("Enter") }
    expect(texts(".level1")).to eq(["Page"])
    typed("type = ARRAY")
    fill("input[name=where]", "")
    tab.wait("have all again", "!location.search.includes('where')")
    expect(texts("tbody tr").size).to be > 40
  end

  it "is on each page of a list that takes one" do
    queries = { "collections" => "type = HASH", "procs" => "retained > 0", "strings" => "file is none" }
    queries.each do |page, query|
      visit("/heaps/2/#{page}")
      heading = texts("h1").size
      typed(query)
      expect([heading, texts("main h1").size, texts("main form").size]).to eq([1, 1, 1]), page
    end
  end

  it "asks one thing at a time, the last one last" do
    visit("/heaps/2/objects")
    tab.evaluate(<<~JS)
      (() => {
        const ask = window.fetch;
        window.asking = window.most = window.asked = 0;
        const held = new Promise((wake) => { window.answer = wake; });
        window.fetch = async (...words) => {
          window.asked += 1;
          window.most = Math.max(window.most, window.asking += 1);
          await held;
          return ask(...words).finally(() => { window.asking -= 1; });
        };
      })()
    JS
    fill("input[name=where]", "class = String")
    tab.wait("ask", "window.asking === 1")
    fill("input[name=where]", "class = Array")
    # The filter waits for a quarter of a second after the last key, and tries again each time.
    tab.evaluate("new Promise((wake) => setTimeout(wake, 600))")
    fill("input[name=where]", "class = Page")
    tab.evaluate("window.answer()")
    listed("class = Page", "where")
    expect(texts("td .object").uniq).to eq(["Page"])
    expect(tab.evaluate("[window.most, window.asked]")).to eq([1, 2])
  end

  it "goes to the page that is there where the list is no more" do
    tab.go("#{@stage.live}/live")
    tab.follow(element("button", "/^Start tracking/"))
    tab.evaluate("fetch('/memprof/live/tracking/stop', { method: 'POST' }).then((answer) => answer.text())")
    tab.following("by typing") { fill("input[name=file]", "app.rb") }
    expect([tab.path, tab.evaluate("document.querySelector('input[name=file]')")])
      .to eq(["/memprof/live?file=app.rb", nil])
  end

  it "says when the list could not be had" do
    visit("/heaps/2/objects")
    tab.evaluate("window.fetch = async () => new Response('', { status: 500, statusText: 'Broken' })")
    fill("input[name=where]", "class = Page")
    tab.wait("announce the result", "document.querySelector('main form output').textContent !== ''")
    expect(texts("main form output.note")).to eq(["Cannot load the list: 500 Broken"])
  end

  it "chooses tracked objects of a process by their files" do
    tab.go("#{@stage.live}/live")
    tab.follow(element("button", "/^Start tracking/"))
    @stage.app.visit(20)
    tab.go("#{@stage.live}/live")
    typed("app.rb", name: "file")
    expect(texts("[data-filtered] .place")).to all(match(/\bapp\.rb:\d+/))
    expect(texts("[data-filtered] .place").join(" ")).to include("app.rb:#{LeakyRails.line("page")}")
    expect(texts("#alive").first).to match(/live, allocated at \d+ sites in matching files\.\z/)
    expect([texts("#alive"), texts("main form output")].uniq.size).to eq(1)
    expect(focus).to eq(["file", 6])
    expect(tab.follow("[data-filtered] a.place")).to eq(200)
  ensure
    tab.go("#{@stage.live}/live")
    tab.follow(element("button", "/^Stop tracking/"))
  end
end
