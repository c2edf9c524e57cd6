# frozen_string_literal: true

require "memprof/agent"
require "memprof/web"
require "rack"
require "tmpdir"

RSpec.describe Memprof::Web::Live::Feed do
  include AgentIntervals
  include WebBrowser

  let(:directory) { Dir.mktmpdir("memprof-spec-") }
  let(:dumps) { Memprof::Web::Live::Dumps.new(directory) }
  let(:recorder) { Memprof::Web::Live::RequestRecorder.new }
  let(:clock) { Struct.new(:now).new(1000.0) }
  let(:feed) { described_class.new(dumps: dumps, recorder: recorder, clock: clock) }

  after do
    Memprof.stop
    FileUtils.rm_rf(directory)
  end

  # What is new when everything may be asked again.
  def later(number)
    clock.now += 10_000
    feed.since(number)
  end

  it "gives everything at first, and then only what is new" do
    first = feed.since(0)
    expect(first).to include(pid: Process.pid, gc: include(collections: be_positive), requests: [], work: [],
      tracing: { wanted: 0, left: 0, traced: 0 }, dumps: { complete: [], unfinished: [] },
      sites: include(source: nil, rows: []))
    expect(first[:samples]).to contain_exactly(include(rss: be > 1_000_000, live: be > 1000, old: be_positive,
      allocated: be_positive, seconds: be_a(Float), at: be_within(600_000).of(Time.now.to_f * 1000)))
    expect(first[:memory].first[:items].map { |item| item[:bytes] }.sum).to eq(first[:memory].first[:rss])
    nothing = { samples: [], memory: [], requests: [], sites: nil, tracing: nil, dumps: nil, work: nil }
    expect(feed.since(first[:number])).to include(nothing)
    news = later(first[:number])
    expect([news[:samples].size, news[:memory].size]).to eq([1, 1])
    expect(news).to include(nothing.slice(:requests, :sites, :tracing, :dumps, :work))
    expect(feed.since(first[:number])[:samples]).to eq(news[:samples]) # for another page
    expect(feed.since(news[:number] + 1)[:samples].size).to eq(2) # of a number that it never gave
  end

  it "has a bounded history, and no thread" do
    allow(Memprof).to receive(:memory).and_raise(Memprof::Error, "no /proc")
    threads = Thread.list
    400.times { later(0) }
    all = feed.since(0)
    expect([all[:samples].size, all[:memory]]).to eq([300, []])
    expect(all[:samples].map { |sample| sample[:number] }).to eq((all[:number] - 299..all[:number]).to_a)
    expect(Thread.list - threads).to be_empty
  end

  it "allocates little, and does not walk the heap, when nothing is due" do
    number = feed.since(0)[:number]
    expect(Memprof).not_to receive(:memory)
    feed.since(number)
    before = GC.stat(:total_allocated_objects)
    10.times { feed.since(number) }
    expect(GC.stat(:total_allocated_objects) - before).to be < 400
  end

  it "starts again in a forked process" do
    feed.since(0)
    number = later(0)[:number]
    allow(Process).to receive(:pid).and_return(Process.pid + 1)
    expect(feed.since(number)).to include(pid: Process.pid, samples: contain_exactly(include(number: 1)))
  end

  it "ranks tracked sites by their live bytes after each GC" do
    Memprof.start
    sizes = { small: 30, large: 300 }
    small = Array.new(40) { "s" * sizes[:small] }
    line = __LINE__ + 1
    large = Array.new(40) { "l" * sizes[:large] }
    10_000.times { "garbage" * 3 }
    GC.start
    news = later(0)
    sites = news[:sites]
    expect(sites).to include(source: :tracking, collections: GC.count, objects: be >= 80)
    mine = sites[:rows].select { |row| row.values_at(:file, :class, :count) == [__FILE__, "String", 40] }
    expect(mine.map { |row| [row[:line], row[:count]] }).to eq([[line, 40], [line - 2, 40]]),
      [small, large].inspect
    expect(mine.first).to include(size: be > 40 * 300, place: end_with("feed_spec.rb:#{line}"), live_for: nil)
    fresh = Array.new(500) { "f" * sizes[:large] }
    expect(later(news[:number])[:sites]).to be_nil, "no GC has run: #{fresh.size}"
    GC.start
    again = later(news[:number])[:sites]
    expect(again[:rows].first).to include(line: __LINE__ - 4, count: 500, size: be > 500 * 300)
    Memprof.stop
    expect(later(news[:number])[:sites]).to include(source: nil, rows: [])
  end

  it "has the agent's sites, once for each of its intervals" do
    report = Memprof.report(stack: 2) { @kept = hostile }
    one = interval(report, ages: report.sites.map { [60.0, 120.0] })
    allow(Memprof::Agent).to receive(:intervals).and_return([one])
    news = feed.since(0)
    expect(news[:sites]).to include(source: :agent, objects: report.total_retained)
    expect(news[:sites][:rows].first).to include(live_for: 60.0, oldest: 120.0, size: be_positive,
      place: /name.*rb\d:1/)
    expect(later(news[:number])[:sites]).to be_nil
    allow(Memprof::Agent).to receive(:intervals).and_return([one, interval(report)])
    expect(later(news[:number])[:sites][:rows].first).to include(live_for: nil)
  end

  it "has traced requests as they end" do
    recorder.start(3)
    tracing = Memprof::Web::Tracing.new(->(_env) { [200, {}, []] }, recorder: recorder)
    get = ->(path) { tracing.call({ "REQUEST_METHOD" => "GET", "PATH_INFO" => path }) }
    ["/a", "/b"].each(&get)
    news = feed.since(0)
    expect(news[:tracing]).to eq(wanted: 3, left: 1, traced: 2)
    expect(news[:requests]).to match([
      include(position: 1, action: "GET /a", status: "200", time: be_positive),
      include(position: 2, action: "GET /b")
    ])
    get.call("/c")
    expect(feed.since(news[:number])).to include(tracing: include(left: 0),
      requests: [include(position: 3, action: "GET /c")])
    recorder.start(1)
    get.call("/again")
    expect(feed.since(0)[:requests]).to match([include(position: 1, action: "GET /again")])
  end

  it "has what actions and jobs cost, where that is counted" do
    Memprof::Agent::Work.record(kind: :job, name: "MailJob", duration: 0.25, objects: 100)
    Memprof::Agent::Work.record(kind: :job, name: "MailJob", duration: 0.75, objects: 300)
    Memprof::Agent::Work.record(kind: :job, name: "MailJob", duration: 0.5)
    Memprof::Agent::Work.record(kind: :action, name: "PagesController#show", duration: 0.1)
    expect(feed.since(0)[:work]).to eq([
      { kind: :job, name: "MailJob", runs: 3, time: 0.5, objects: 200 },
      { kind: :action, name: "PagesController#show", runs: 1, time: 0.1, objects: nil }
    ])
  ensure
    Memprof::Agent::Work.clear
  end

  it "says how far a dump is" do
    turn = Queue.new
    allow(Memprof).to receive(:dump_all) do |path, **|
      File.write("#{path}.IN_PROGRESS", "half", perm: 0o600)
      turn.pop
      File.rename("#{path}.IN_PROGRESS", path)
    end
    number = dumps.take
    writing = eventually("a beginning") do
      later(0)[:dumps].then { |all| all if all[:unfinished].any? { |dump| dump[:size].positive? } }
    end
    expect(writing).to eq(complete: [], unfinished: [{ id: number, pid: Process.pid, size: 4 }])
    turn << true
    done = eventually("the dump") { later(0)[:dumps].then { |all| all if all[:complete].any? } }
    expect(done).to match(unfinished: [], complete: [include(id: number, size: 4)])
  ensure
    turn << true
  end

  describe "at /live.json?since=" do
    let(:live) { Memprof::Web::Live.new(dumps: dumps, recorder: recorder) }
    let(:heaps) { Memprof::Web::Heaps.new(live: live) }
    let(:app) { Memprof::Web.new(heaps: heaps, gate: WebBrowser::Open.new) }

    it "is what the page asks for" do
      page = ask(app, "/live", script_name: "/memprof").body
      expect(page).to include(%(data-from="/memprof/live.json"), %(data-pid="#{Process.pid}"))
      news = ask(app, "/live.json?since=0&pid=#{Process.pid}")
      expect(news.json).to include(other: false, samples: [include(number: be_positive)])
      expect(ask(app, "/live.json?since=#{news.json[:number]}").json[:sites]).to be_nil
    end

    it "measures nothing for a page of another worker, nor for whom the gate refuses" do
      expect(live.feed).not_to receive(:since)
      expect(ask(app, "/live.json?since=0&pid=1").json).to eq(pid: Process.pid, other: true)
      ["x", "-1", "1e3"].each { |number| expect(ask(app, "/live.json?since=#{number}").status).to eq(400) }
      closed = Memprof::Web.new(heaps: heaps, gate: Memprof::Web::Gate::Closed.new)
      expect(ask(closed, "/live.json?since=0").status).to eq(404)
      expect(ask(web_app, "/live.json?since=0").status).to eq(404)
    end
  end
end
