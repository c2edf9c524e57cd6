# frozen_string_literal: true

require "json"
require "memprof/web"

# Every page in a browser: that it is whole and readable, wide and narrow, light, dark and on paper.
RSpec.describe "the pages of memprof web in a browser" do
  include_context "with a browser"

  contrast = 4.5 # WCAG 2, level AA
  # Pages of a heap, and others, besides those that links of pages lead to.
  heap = %w[
    / /leaks /flame /groups /groups?by=line&then=class /groups?by=generation /groups?by=gem /groups?by=age
    /objects /objects?where=class+%3D+Page&sort=size /classes /namespaces /namespaces?under=ActiveSupport
    /tree /tree?by_class=1 /paths /paths?where=class+%3D+Page /strings /collections
    /procs /threads /slots /classes/Page /classes/ProductsController
    /search?q=PageCache /search?q=Cache /search
  ].map { |path| "/heaps/2#{path}" }
  others = %w[
    /heaps /verdict?dumps=1,2 /verdict /diff?a=1&b=2 /diff/flame?a=1&b=2
    /diff/objects?a=1&b=2&change=new /diff/interface?a=1&b=2
    /diff /library
    /traces/1 /traces/1?from=0.01&to=0.1 /traces/1/requests/2
    /tracked/1 /tracked/1/flame /tracked/1/flame?own=yes
    /malloc/1 /malloc/1?from=0.1 /malloc/1/flame /malloc/1/flame?vm=yes /boots/1 /boots/1?min=0 /boots/1/flame
  ]
  cores = %w[/ /blocks /objects?where=leaked /objects/0x1]
  live = %w[/live /live/requests /live/requests/1 /live/memory /live/agent]
  # What only leads elsewhere, or is a file.
  elsewhere = %w[Home LiveDump LiveRequestsFile RecordingList TraceList TrackedList BootList]

  # What the checks of appearance.js find.
  def ask(name, *arguments)
    values = arguments.map { |value| JSON.generate(value) }.join(", ")
    @tab.evaluate("#{WebStage::APPEARANCE.strip}.#{name}(#{values})")
  end

  # Looks at the page that is there in all ways.
  def faults(contrast)
    found = { "problems" => @tab.watch.forget, "names" => ask(:unnamed) }
    { 1440 => %i[overflow labels heads], 390 => %i[overflow labels letters nameless] }.each do |width, checks|
      @tab.resize(width, 800)
      ask(:settled)
      checks.each { |check| found["#{check} at #{width}"] = ask(check) }
    end
    @tab.resize(1280, 800)
    ["light", "dark"].each do |scheme|
      @tab.media(scheme: scheme)
      found["contrast, #{scheme}"] = ask(:faint, contrast)
    end
    @tab.media("print")
    found["on paper"] = ask(:visible, "nav.menu", "form", ".pager", ".skip")
    @tab.media
    found.reject { |_, list| list.empty? }
  end

  # Where links of the page lead that are there.
  def linked(pattern)
    targets = @tab.evaluate("[...document.querySelectorAll('a')].map((link) => link.getAttribute('href'))")
    targets.compact.grep(pattern).first or raise "no link to #{pattern.inspect} at #{@tab.path}"
  end

  # What is wrong with pages, by their addresses.
  def wrong(addresses, contrast)
    addresses.to_h { |address| [address, { "status" => @tab.go(address) }.merge(faults(contrast))] }
      .reject { |_, found| found == { "status" => 200 } }
  end

  it "are readable: those of a heap" do
    expect(wrong(heap.map { |path| @stage.dumps + path }, contrast)).to eq({})
  end

  it "are readable: those of one thing" do
    @tab.go("#{@stage.dumps}/heaps/2/leaks")
    object = linked(%r{/objects/0x})
    pages = [object, object.sub("objects", "graph"), "/heaps/2/flame?of=#{object[/0x\h+/]}",
      "/heaps/2/tree?of=#{object[/0x\h+/]}"]
    @tab.go("#{@stage.dumps}/library")
    pages << linked(%r{\A/library/\d+})
    @tab.go("#{@stage.dumps}/malloc/1")
    pages << linked(%r{\A/malloc/1/line\?})
    expect(wrong(pages.map { |path| @stage.dumps + path }, contrast)).to eq({})
  end

  it "are readable: rows of an object that were opened" do
    @tab.go("#{@stage.dumps}/heaps/2/objects?where=class+%3D+Page")
    @tab.follow("td a.object")
    4.times do |level|
      @tab.click("#referrers tr[aria-level='#{level + 1}'] .unfold[aria-expanded=false]")
      @tab.wait("open a row", "document.querySelector(\"#referrers tr[aria-level='#{level + 2}']\") !== null")
    end
    expect(faults(contrast)).to eq({})
  end

  it "are readable: comparisons, requests, allocations, the library" do
    expect(wrong(others.map { |path| @stage.dumps + path }, contrast)).to eq({})
  end

  it "are readable: those of a core file" do
    skip CoreFiles.obstacle if CoreFiles.obstacle
    Dir.mktmpdir do |directory|
      core = CoreFiles.write(directory, RbConfig.ruby, "-e", CoreFiles::LEAKING)
      skip "gcore may not trace" unless core
      web = WebProcess.new("--token", WebStage::TOKEN, core, chdir: directory)
      @tab.go("#{web.origin}/?token=#{WebStage::TOKEN}")
      @tab.go("#{web.origin}/heaps/1/objects?where=leaked")
      one = linked(%r{/objects/0x})
      pages = cores.map { |path| path == "/objects/0x1" ? one : "/heaps/1#{path}" }
      expect(wrong(pages.map { |path| web.origin + path }, contrast)).to eq({})
    ensure
      web&.stop
    end
  end

  it "are readable: two reports compared" do
    Dir.mktmpdir do |directory|
      reports = %w[before.json after.json].map { |name| File.join(directory, name) }
      reports.each { |path| FileUtils.cp(@stage.files[:report], path) }
      web = WebProcess.new("--token", WebStage::TOKEN, *reports, chdir: directory)
      @tab.go("#{web.origin}/?token=#{WebStage::TOKEN}")
      expect(wrong(["#{web.origin}/tracked/2/diff?before=1"], contrast)).to eq({})
    ensure
      web&.stop
    end
  end

  it "are readable: those of an application" do
    expect(wrong(live.map { |path| @stage.live + path }, contrast)).to eq({})
    @tab.go("#{@stage.live}/live")
    @tab.follow("form[action$='/tracking/start'] button")
    @stage.app.visit(3)
    @tab.go("#{@stage.live}/live")
    pages = ["/memprof/live?types=yes", "/memprof/live?file=app.rb", linked(%r{/live/source})]
    @tab.go("#{@stage.live}/live/memory")
    @tab.follow("form button[formaction$='/malloc/start']")
    @stage.app.visit(3)
    @tab.go("#{@stage.live}/live/memory")
    pages += ["/memprof/live/memory?sort=calls", linked(%r{/live/malloc\?})]
    origin = @stage.live.delete_suffix("/memprof")
    expect(wrong(pages.map { |path| origin + path }, contrast)).to eq({})
  ensure
    @tab.go("#{@stage.live}/live")
    @tab.follow("button[formaction$='/tracking/stop']")
    @tab.go("#{@stage.live}/live/memory")
    @tab.follow("button[formaction$='/malloc/stop']")
  end

  it "are all that there are" do
    router = Memprof::Web::Router.standard
    details = %w[/heaps/1/objects/0x1 /heaps/1/graph/0x1 /library/1 /live/source /live/malloc /malloc/1/line
      /tracked/2/diff]
    details += cores.map { |path| "/heaps/1#{path}" }
    seen = [*heap, *others, *live, *details].map { |path| router.find("GET", path.sub(/\?.*/, "")).page }
    shown = Memprof::Web::Page.all - seen
    expect(shown.map { |page| page.name.split("::").last }).to match_array(elsewhere)
  end
end
