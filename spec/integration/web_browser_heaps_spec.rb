# frozen_string_literal: true

require "memprof/library"
require "memprof/web/server"
require "tmpdir"

# Heaps that come and go, in a Chromium: while one is opened, closed, deleted.
RSpec.describe "heaps in a browser" do
  include HeapDumps
  include PageReader
  include_context "with a browser"

  # One for each example, as it is closed before the server that it looks at.
  let(:tab) { @stage.browser.tab }

  after { expect(tab.watch.forget).to eq([]) }

  # The cell of a heap's state, in the list.
  def state = texts("main tbody td:nth-child(3)").first

  def press(word) = tab.follow(element("main button", "/^#{word}$/"))

  # A server of this process, so that an example can say when a dump is read.
  def serve(*dumps)
    heaps = Memprof::Web::Heaps.new
    dumps.each { |dump| heaps.add(dump, index: false) }
    server = Memprof::Web::Server.new(Memprof::Web.new(heaps: heaps, gate: WebBrowser::Open.new))
    server.start
    yield(server.url.chomp("/"), heaps)
  ensure
    tab.close
    server&.stop
    heaps.close_all
  end

  # Makes the opening of a dump wait for the example: a stage and its progress, or to continue.
  def hold_opening
    orders = Queue.new
    allow(Memprof::Heap).to(receive(:open).and_wrap_original do |open, *path, **options, &progress|
      until (order = orders.pop) == :go
        progress.call(*order)
      end
      open.call(*path, **options, &progress)
    end)
    orders
  end

  # Goes to a page that does not come at once.
  def go_and_see(address)
    tab.ask("Page.navigate", url: address)
    tab.wait("show progress", "document.querySelector('progress') !== null")
  end

  it "show how far the opening is, until the page comes by itself" do
    orders = hold_opening
    serve(cache_dump) do |origin, _|
      go_and_see("#{origin}/heaps/1/leaks")
      expect([tab.watch.status, texts("h1")]).to eq([202, ["Opening cache-1.memprof"]])
      expect(tab.evaluate("document.querySelector('progress').position")).to eq(-1)
      orders << [:reading, 3 << 20, 12 << 20]
      tab.wait("see it go on", "document.querySelector('progress')?.position === 0.25")
      expect(texts("main p").first).to eq("Reading: 3.0 MiB of 12.0 MiB.")
      orders << [:linking, 0, nil]
      tab.wait("see the next stage", "document.querySelector('main p')?.textContent.startsWith('Following')")
      orders << :go
      tab.wait("see the page", "document.querySelector('h1')?.textContent === 'What is large'")
      expect([tab.path, tab.watch.status]).to eq(["/heaps/1/leaks", 200])
    end
  end

  it "are not opened any more where they are closed meanwhile" do
    orders = hold_opening
    serve(cache_dump) do |origin, heaps|
      heaps.first.prepare
      tab.go("#{origin}/heaps")
      expect(state).to eq("opening")
      press("Close")
      expect(state).to eq("closed")
      orders << :go
      press("Open")
      tab.wait("see it", "document.querySelector('.lead') !== null")
      expect([tab.path, texts("h1")]).to eq(["/heaps/1/", ["cache-1.memprof"]])
    end
  end

  it "are listed when they are closed, and opened again by a click" do
    serve(cache_dump) do |origin, heaps|
      heaps.first.heap(patience: 30)
      tab.go("#{origin}/heaps")
      before = texts("main tbody td:nth-child(2)")
      expect(state).to eq("open")
      press("Close")
      expect([tab.path, state, texts("main tbody td:nth-child(2)")]).to eq(["/heaps", "closed", before])
      press("Open")
      expect(texts("h1")).to eq(["cache-1.memprof"])
      tab.go("#{origin}/heaps")
      expect(state).to eq("open")
      press("Close")
      press("Forget")
      expect(texts("main .empty")).to eq(["No heap is listed. Open one with: memprof web FILE"])
      expect(File.exist?(cache_dump)).to be(true)
    end
  end

  it "go from the list and the library when a dump is deleted" do
    Dir.mktmpdir do |directory|
      shelf = Memprof::Library.new(directory)
      ["no. 0", "no. 1"].each do |name|
        shelf.take(app: "cache", name: name) { |part| IO.copy_stream(cache_dump, part) }
      end
      WebProcess.run("--token", WebStage::TOKEN, "--library=#{directory}") do |web|
        tab.go("#{web.origin}/?token=#{WebStage::TOKEN}")
        tab.go("#{web.origin}/library")
        tab.follow(link("/^no\\. 1$/"))
        gone = tab.path
        tab.go("#{web.origin}/library")
        tab.follow("main a[href='#{gone.sub("heaps", "library").chomp("/")}']")
        press("Delete")
        expect([tab.path, texts("main td:last-child")]).to eq(["/library", ["no. 0"]])
        tab.go("#{web.origin}/heaps")
        expect(texts("main tbody tr")).to eq([])
        expect(tab.go("#{web.origin}#{gone}")).to eq(404)
        expect(texts("main .error").first).to match(/no heap \d+/)
        expect(tab.watch.forget).to all(match(/404/))
        expect(shelf.map(&:name)).to eq(["no. 0"])
        tab.close
      end
    end
  end
end
