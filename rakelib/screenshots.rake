# frozen_string_literal: true

require "fileutils"

# The pictures of docs: pages of `memprof web` with dumps of the Rails app that the specs have leak, and a
# recording of a program that imports files.
class Screenshots
  PLACE = "docs/images"
  WIDE = [1280, 800].freeze
  NARROW = [390, 1000].freeze
  QUALITY = 72
  MOST = 900 * 1024 # bytes of all together
  # Names and paths of the pages; `:page` and `:object` stand for one of the objects of the first finding and
  # for the Hash that has them, `:line` for the line that most of what is live at the end was allocated at.
  PAGES = {
    "overview" => "/heaps/2/", "leaks" => "/heaps/2/leaks", "object" => "/heaps/2/objects/:page",
    "flame" => "/heaps/2/flame", "graph" => "/heaps/2/graph/:object",
    "groups" => "/heaps/2/groups?by=generation",
    "compare" => "/diff?a=1&b=2", "requests" => "/traces/1", "allocations" => "/tracked/1/flame",
    "boot" => "/boots/1",
    "malloc" => "/malloc/1?sort=leaked", "malloc-flame" => "/malloc/1/flame?vm=yes",
    "malloc-line" => "/malloc/1/line?:line"
  }.freeze
  UPDATED = "document.querySelector('#updates').textContent"
  # Other settings: dark scheme, and a phone.
  OTHERS = {
    "overview-dark" => ["overview", WIDE, "dark"], "object-narrow" => ["object", NARROW, "light"]
  }.freeze

  def initialize(stage)
    @stage = stage
    @tab = stage.tab
  end

  # @return [Integer] bytes of all pictures
  def take
    FileUtils.mkdir_p(PLACE)
    places = addresses
    PAGES.each { |name, path| picture(name, place(path, places), WIDE, "light") }
    picture("live", "#{@stage.live}/live", WIDE, "light") { watch_the_app }
    picture("request", "#{@stage.shop}/products/7?memprof=allocations", WIDE, "light")
    picture("live-memory", "#{@stage.live}/live/memory", WIDE, "light") { record_the_app }
    OTHERS.each { |name, (page, size, scheme)| picture(name, place(PAGES.fetch(page), places), size, scheme) }
    Dir["#{PLACE}/*.webp"].sum { |path| File.size(path) }
  end

  private

  # The addresses of one of the objects of the first finding, and of the Hash that has them.
  def addresses
    @tab.go("#{@stage.dumps}/heaps/2/leaks")
    page = address(".card p a", "Page")
    @tab.go("#{@stage.dumps}/heaps/2/objects/#{page}")
    object = address("main a", "Hash")
    @tab.go("#{@stage.dumps}/malloc/1?sort=leaked")
    line = @tab.evaluate("document.querySelector('td a[href*=\"/line?\"]').href")[/\?(.*)/, 1]
    { ":object" => object, ":page" => page, ":line" => line }
  end

  # The address in the first of these links with this text.
  def address(selector, text = "")
    links = "[...document.querySelectorAll(#{selector.dump})]"
    @tab.evaluate("#{links}.find((link) => link.textContent.startsWith(#{text.dump})).href")[/0x\h+/]
  end

  def place(path, places)
    @stage.dumps + path.gsub(/:(?:object|page|line)/, places)
  end

  def picture(name, address, size, scheme)
    @tab.resize(*size)
    @tab.media(scheme: scheme)
    @tab.go(address)
    yield if block_given?
    path = File.join(PLACE, "web-#{name}.webp")
    File.binwrite(path, @tab.picture(format: "webp", quality: QUALITY))
    puts("#{path}: #{File.size(path) / 1024} KiB")
  end

  # The steps of a search for a leak.
  def watch_the_app
    @tab.follow("form[action$='/live/tracking/start'] button")
    15.times do
      @stage.app.visit(20)
      @stage.app.ask("collect")
      updated = @tab.evaluate(UPDATED)
      @tab.wait("update the page") { @tab.evaluate(UPDATED) != updated }
    end
  end

  # What the app's requests allocate.
  def record_the_app
    @tab.follow("form button[formaction$='/malloc/start']")
    @stage.app.visit(50)
    @tab.go("#{@stage.live}/live/memory")
  end
end

desc "Take the pictures of docs again, in #{Screenshots::PLACE} (needs chromium, Rails and puma)"
task "docs:screenshots" => "compile:release" do
  $LOAD_PATH.unshift(File.expand_path("lib"))
  require "memprof"
  require_relative "../spec/support/web_stage"
  size = Screenshots.new(WebStage.shared).take
  abort("#{size} bytes are too many, #{Screenshots::MOST} would do") if size > Screenshots::MOST
end
