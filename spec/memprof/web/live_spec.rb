# frozen_string_literal: true

require "memprof/web"
require "rack"
require "tmpdir"

RSpec.describe Memprof::Web::Live do
  include WebBrowser

  let(:directory) { Dir.mktmpdir("memprof-spec-") }
  let(:recorder) { described_class::RequestRecorder.new }
  let(:live) { described_class.new(dumps: described_class::Dumps.new(directory), recorder: recorder) }
  let(:heaps) { Memprof::Web::Heaps.new(live: live) }
  let(:app) { Memprof::Web.new(heaps: heaps, gate: WebBrowser::Open.new) }

  after { FileUtils.rm_rf(directory) }

  def post(path, form = {}, **options)
    ask(app, path, method: "POST", form: form, headers: { "Sec-Fetch-Site" => "same-origin" }, **options)
  end

  it "shows what the process is" do
    expect(ask(app, "/").location).to eq("/live")
    facts = ask(app, "/live.json").json[:process]
    expect(facts).to include(pid: Process.pid, ruby: RUBY_DESCRIPTION, memprof: Memprof::VERSION, types: nil)
    expect(facts[:rss]).to be > 1_000_000
    expect(facts[:gc]).to include(collections: be > 0, live: be > 1000)
    types = ask(app, "/live.json?types=yes").json[:process][:types]
    expect(types.find { |row| row[:type] == "string" }[:count]).to be > 1000
    expect(ask(app, "/live").body)
      .to include("<h1>Process #{Process.pid}</h1>", %(href="/live" aria-current="page"))
  end

  it "starts and stops tracking, and shows what lives" do
    expect(post("/live/tracking/start", { "sample" => "1", "stack" => "2" }).location)
      .to eq("/live?done=started&pid=#{Process.pid}")
    expect(post("/live/tracking/start").location).to include("done=already")
    kept = Array.new(321) { Object.new }
    rows = ask(app, "/live.json").json[:tracking][:rows]
    line = __LINE__ - 2
    expect(rows).to include(count: kept.size, file: __FILE__, line: line, class: "Object")
    page = ask(app, "/live?done=started&pid=1").body
    expect(page).to include("Tracking started in process 1.", "This page shows process #{Process.pid}")
    source = ask(app, page[%r{/live/source\?file=[^"]*line=#{line}}].gsub("&amp;", "&"))
    expect(source.body).to match(%r{<tr class="chosen" aria-current="true"><td class="number">#{line}</td>})
    expect(source.body).to include("Array.new(321)")
    expect(post("/live/tracking/clear").location).to include("done=cleared")
    rows = ask(app, "/live.json").json[:tracking][:rows]
    expect(rows.map { |row| row.values_at(:file, :line) }).not_to include([__FILE__, line])
    expect(post("/live/tracking/stop").location).to include("done=stopped")
    expect([Memprof.running?, ask(app, "/live.json").json[:tracking]]).to eq([false, { running: false }])
    expect(post("/live/tracking/stop").location).to include("done=idle")
    expect(post("/live/tracking/clear").location).to include("done=idle")
  end

  it "chooses tracked objects by the files that allocated them" do
    post("/live/tracking/start")
    kept = Array.new(40) { Object.new }
    others = eval("Array.new(30) { Object.new }", nil, "/srv/sh\xF6p/app/models/<b>.rb", 7)
    tracking = ->(file) { ask(app, "/live.json?#{URI.encode_www_form(file: file)}").json[:tracking] }
    models = tracking.call("app/models")
    expect(models[:rows].map { |row| row.values_at(:count, :class, :line) }).to include([30, "Object", 7]),
      [kept, others].inspect
    expect(models[:rows].map { |row| row[:file] }).to all(end_with("p/app/models/<b>.rb"))
    expect(models).to include(file: "app/models", page: 1, places: models[:rows].size,
      objects: models[:rows].sum { |row| row[:count] })
    [__FILE__, __FILE__.delete_prefix("#{Dir.pwd}/")].each do |file|
      expect(tracking.call(file)[:rows].map { |row| row[:file] }.uniq).to eq([__FILE__]), file
    end
    expect(tracking.call("nowhere")).to include(rows: [], objects: 0, places: 0)
    expect(tracking.call("")).to include(file: nil, objects: be > models[:objects] + 40)
    page = ask(app, "/live?file=%3Cb%3E").body
    expect(page).to include('name="file" value="&lt;b&gt;"', "in matching files", "&lt;b&gt;.rb:7")
    expect(page).not_to include("<b>")
    expect(ask(app, "/live?file=nowhere").body).to include("No live object was allocated there.")
    expect(ask(app, "/live?file=%FF").status).to eq(400)
  end

  it "counts nothing that the pages allocate" do
    post("/live/tracking/start")
    3.times { ask(app, "/live") }
    files = ask(app, "/live.json").json[:tracking][:rows].map { |row| row[:file] }
    expect(files.grep(%r{/lib/memprof/|/web/views/})).to be_empty
  end

  it "shows no file in which no tracked object was allocated" do
    expect(ask(app, "/live/source?file=/etc/passwd&line=1").status).to eq(404)
    post("/live/tracking/start")
    kept = Object.new
    line = __LINE__ - 1
    expect(ask(app, "/live/source?file=#{__FILE__}&line=#{line}").status).to eq(200), kept.inspect
    ["/etc/passwd", "#{File.dirname(__FILE__)}/../web/live_spec.rb", ""].each do |file|
      expect(ask(app, "/live/source?file=#{file}&line=#{line}").status).to be_between(400, 404), file
    end
    expect(ask(app, "/live/source?file=#{__FILE__}&line=1").status).to eq(404)
  end

  it "takes a dump, opens it, and deletes it" do
    place = post("/live/dumps").location
    answer = eventually("the dump") { ask(app, place).then { |there| there unless there.status == 202 } }
    number = place[/\d+/].to_i
    expect(answer.location).to eq("/heaps/#{number}/")
    eventually("the heap") { heaps.fetch(number).heap(patience: 120) }
    expect(ask(app, answer.location).body).to include("process #{Process.pid}")
    other = Memprof::Web.new(gate: WebBrowser::Open.new, # another worker
      heaps: Memprof::Web::Heaps.new(live: described_class.new(dumps: described_class::Dumps.new(directory))))
    eventually("the heap") { ask(other, "/heaps/#{number}.json").status == 200 }
    expect(ask(app, "/live").body).to include("/heaps/#{number}/")
    expect(post("/live/dumps/#{number}/delete").location).to include("done=deleted")
    expect(Dir.children(directory)).to be_empty
    expect(ask(app, "/heaps/#{number}/").status).to eq(404)
    expect(post("/live/dumps/#{number}/delete").status).to eq(404)
  end

  it "takes one dump at a time, and says so" do
    turn = Queue.new
    allow(Memprof).to receive(:dump_all) { turn.pop }
    place = post("/live/dumps").location
    expect(place).to start_with("/live/dumps/")
    second = post("/live/dumps")
    expect([second.status, second.body])
      .to match([409, /process #{Process.pid} is already writing a dump/])
  ensure
    turn << true
  end

  it "has no page behind the last one" do
    Memprof.start
    answer = ask(app, "/live?page=999999999")
    expect([answer.status, answer.body]).to match([404, /no page 999999999/])
  ensure
    Memprof.stop
  end

  it "says why there is no dump" do
    allow(Memprof).to receive(:dump_all).and_raise(Memprof::Error, "cannot write it: No space left on device")
    place = post("/live/dumps").location
    answer = eventually("an end") { ask(app, place).then { |there| there unless there.status == 202 } }
    expect([answer.status, answer.body]).to match([500, /No space left on device/])
  end

  # As Active Record does.
  def ask_database
    Memprof::Tracers::Sql.execute("select 7 from live", "sqlite") { nil }
  end

  it "traces the next requests, and shows what they did" do
    recorder.installed = true
    expect(post("/live/requests", { "count" => "2" }).location).to include("done=tracing")
    hostile = "/<script>alert(1)</script>"
    page = ->(_env) { 5.times { ask_database } && [200, {}, []] }
    tracing = Memprof::Web::Tracing.new(page, recorder: recorder)
    2.times { tracing.call({ "REQUEST_METHOD" => "GET", "PATH_INFO" => hostile, "QUERY_STRING" => "a=1" }) }
    expect(ask(app, "/live").body).to include("Costs of 2 requests")
    list = ask(app, "/live/requests?sort=objects")
    expect(list.body).to include("/live/requests/1", "&lt;script&gt;")
    expect(list.body).not_to include("<script>alert")
    expect(ask(app, "/live/requests.json").json[:rows].map { |row| row[:status] }).to eq(%w[200 200])
    expect(list.body).to include("SQL statements", "select ? from live")
    expect(ask(app, "/live/requests/2").body)
      .to include("&lt;script&gt;", "created", "select ? from live", "N+1")
    expect(ask(app, "/live/requests?sort=nonsense").status).to eq(400)
    ["0", "3", "-1", "x"].each { |number| expect(ask(app, "/live/requests/#{number}").status).to eq(404) }
    file = ask(app, "/live/requests-file")
    log = NaiveTraceLog.read(file.body)
    expect([log.entries.size, log.broken]).to eq([2, 0])
    expect(file.headers["content-disposition"]).to include("attachment")
  end

  it "says what is missing for that, and stops it" do
    expect(ask(app, "/live").body).to include("use Memprof::Web::Tracing")
    post("/live/requests", { "count" => "5" })
    post("/live/requests", { "stop" => "yes" })
    expect(recorder).not_to be_wanted
  end

  it "ignores invalid numbers" do
    ["0", "-1", "x", "1e9", "99999999999"].each do |number|
      expect(post("/live/tracking/start", { "sample" => number }).status).to eq(400), number
      expect(post("/live/requests", { "count" => number }).status).to eq(400), number
    end
    ["/live?done=<b>", "/live?page=0", "/live?pid=x&done=started"].each do |target|
      expect(ask(app, target).status).to eq(400), target
    end
    expect([Memprof.running?, recorder.wanted?]).to eq([false, false])
  end

  it "changes nothing for another site, nor without POST" do
    paths = ["/live/tracking/start", "/live/tracking/stop", "/live/dumps", "/live/requests"]
    foreign = [{ "Sec-Fetch-Site" => "cross-site" }, { "Origin" => "null" }, {}]
    paths.product(foreign).each do |path, headers|
      expect(ask(app, path, method: "POST", headers: headers).status).to eq(403), path
    end
    ["/live/tracking/start", "/live/tracking/stop", "/live/dumps"].each do |path|
      expect(ask(app, path).status).to eq(404), path
    end
    expect([Memprof.running?, recorder.wanted?, live.dumps.count]).to eq([false, false, 0])
  end

  it "takes fields that the application has read already, as Rails does" do
    body = "count=7"
    env = Rack::MockRequest.env_for("/live/requests", method: "POST", input: body,
      "CONTENT_TYPE" => "application/x-www-form-urlencoded", "HTTP_SEC_FETCH_SITE" => "same-origin")
    input = env["rack.input"]
    input.define_singleton_method(:rewind) { 0 } # Rack 3 has none
    expect(Rack::MethodOverride.new(app).call(env).first).to eq(303)
    expect(recorder.state[:left]).to eq(7)
  end

  it "is not there where files are shown" do
    app = web_app(cache_dump)
    ["/live", "/live.json", "/live/source?file=a&line=1", "/live/requests", "/live/dumps/1",
      "/live/memory.json"].each do |path|
      expect(ask(app, path).status).to eq(404), path
    end
    own = { "Sec-Fetch-Site" => "same-origin" }
    ["/live/tracking/start", "/live/dumps", "/live/requests", "/live/malloc/start"].each do |path|
      expect(ask(app, path, method: "POST", headers: own).status).to eq(404), path
    end
    expect(ask(app, "/heaps").body).not_to include("/live")
    expect([Memprof.running?, Memprof::Malloc.running?]).to eq([false, false])
  end
end
