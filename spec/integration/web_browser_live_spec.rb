# frozen_string_literal: true

require "fileutils"
require "tmpdir"

# What a browser changes: an application that is watched, a library of dumps. And how a browser is started.
RSpec.describe "memprof web in a browser, with something to change" do
  include PageReader
  include_context "with a browser"

  after { expect(@tab.watch.forget).to eq([]) if @tab }

  it "tracks an application, traces its requests and takes its dump, by clicks alone" do
    tab.go("#{@stage.live}/live")
    tab.follow(element("button", "/^Start tracking/"))
    fill("input[name=count]", "3")
    tab.follow(element("button", "/^Trace the next/"))
    expect(texts("[role=status]").first).to match(/traces its next requests/)
    @stage.app.visit(40)
    @stage.app.ask("collect")
    tab.go("#{@stage.live}/live")
    line = LeakyRails.line("page")
    place = element("main a.place", "/app\\.rb:#{line}$/")
    # The block that leaks holds each request with all that it made: gems have many lines.
    tab.follow(link("/^Next$/", ".pager")) until tab.evaluate("Boolean(#{place})")
    tab.follow(place)
    expect(texts(".chosen").join).to include(LeakyRails.source("page").strip)
    tab.go("#{@stage.live}/live")
    tab.follow(link("/^Costs of 3 requests/"))
    tab.follow(link("/products/"))
    expect(texts("h2")).to include("objects", "gc")
    tab.go("#{@stage.live}/live")
    tab.follow(element("button", "/^Take a dump/"))
    expect(tab.path).to match(%r{\A/memprof/heaps/\d+/\z})
    search_for("Page")
    expect(texts("main .place, main table a").join(" ")).to include("app.rb:#{line}")
    tab.go("#{@stage.live}/live")
    tab.follow(element("button", "/^Delete/"))
    expect(texts("[role=status]").first).to match(/Deleted the dump/)
    tab.follow(element("button", "/^Stop tracking/"))
    expect(texts("[role=status]").first).to match(/^Tracking stopped in process/)
  end

  it "shows an application as it changes, without a reload, until it is paused" do
    tab.go("#{@stage.live}/live")
    tab.follow(element("button", "/^Start tracking/"))
    fill("input[name=count]", "3")
    tab.follow(element("button", "/^Trace the next/"))
    line = File.readlines(LeakyRails::APP).index { |text| text.include?("* 4_000") } + 1
    rows = "[...document.querySelectorAll('#site-rows tr')]"
    site = "#{rows}.find((row) => /app\\.rb:#{line}$/.test(row.innerText))"
    @stage.app.visit(40)
    @stage.app.ask("collect")
    tab.wait("see the site", "Boolean(#{site})")
    before = tab.evaluate("Number(#{site}.cells[2].innerText)")
    ages = tab.evaluate("[...#{site}.cells].slice(3, 5).map((cell) => cell.innerText)")
    expect(ages).to eq(%w[unknown unknown])
    tab.wait("see requests", "document.querySelectorAll('#ended-rows tbody tr').length === 3")
    expect(texts("#ended-rows a")).to all(match(/products/))
    expect(texts("#left, #costs")).to include("Costs of 3 requests")
    tab.wait("see charts", "document.querySelectorAll('#charts canvas').length === 4")
    loads = tab.watch.loads
    @stage.app.visit(80)
    @stage.app.ask("collect")
    tab.wait("see it grow", "/^\\+/.test(#{site}.cells[1].innerText)")
    expect(tab.evaluate("[#{site}.rowIndex, Number(#{site}.cells[2].innerText)]")).to match([1, be > before])
    tab.click("#pause")
    asked = tab.watch.requests.size
    expect(texts("#pause, #stopped")).to eq(["Resume", "Paused."])
    tab.click("#pause")
    tab.wait("go on") { tab.watch.requests.size > asked }
    expect(tab.watch.loads).to eq(loads)
    tab.follow(element("button", "/^Stop tracking/"))
  end

  it "renames what the library keeps, and compares it" do
    tab.go("#{@stage.dumps}/library")
    tab.follow(link("/^Details$/"))
    fill("input[name=name]", "after <b>the</b> sale")
    tab.follow(element("button", "/^Rename$/"))
    expect(texts("h1")).to eq(["after <b>the</b> sale"])
    tab.go("#{@stage.dumps}/library")
    tab.follow(element("button", "/^Compare$/"))
    expect(texts("h1").first).to match(/\Ashop → after <b>/)
  end

  it "is started with the address that opens once" do
    Dir.mktmpdir do |directory|
      opened = File.join(directory, "opened")
      browser = File.join(directory, "xdg-open")
      File.write(browser, "#!/bin/sh\nprintf '%s' \"$*\" >#{opened}.part\nmv #{opened}.part #{opened}\n")
      FileUtils.chmod(0o755, browser)
      path = [directory, ENV.fetch("PATH")].join(File::PATH_SEPARATOR)
      WebProcess.run(@stage.files[:before], open: true, env: { "PATH" => path }) do |web|
        eventually("a browser") { File.exist?(opened) }
        expect(File.read(opened)).to eq(web.address)
        other = @stage.browser.tab
        expect(other.go(File.read(opened))).to eq(200)
        expect([other.path, other.evaluate("document.querySelector('h1').textContent")])
          .to eq(["/heaps/1/", "before.memprof"])
        other.close # before the server: nothing is asked for any more
        expect(web.stop).to eq(0)
      end
    end
  end

  it "says so where there is no browser to start" do
    Dir.mktmpdir do |directory|
      # Nothing but what the command itself needs.
      WebProcess.run(@stage.files[:before], open: true, env: { "PATH" => directory }) do |web|
        eventually("a word") { web.errors.include?("No browser found: open the URL yourself.") }
      end
    end
  end
end
