# frozen_string_literal: true

require "memprof/agent"
require "memprof/web"
require "rack"

RSpec.describe "The page of the agent" do
  include AgentIntervals
  include WebBrowser

  let(:heaps) { Memprof::Web::Heaps.new(live: Memprof::Web::Live.new) }
  let(:app) { Memprof::Web.new(heaps: heaps, gate: WebBrowser::Open.new) }

  it "says that there is no agent" do
    expect(ask(app, "/live/agent.json").json).to include(running: false, intervals: [], live: [], leaks: [])
    expect(ask(app, "/live/agent").body).to include("The agent is not running in this process.")
    expect(ask(app, "/live").body).to include(%(href="/live/agent"))
    expect(ask(web_app, "/live/agent").status).to eq(404)
  end

  it "shows intervals, sites, leaks and the cost" do
    first = interval { hostile }
    sites = first.report.sites
    ages = sites.map { [60.0, 120.0] }
    second = interval(first.report, at: 1_700_000_060, rss: 300_000_000, ages: ages)
    leak = Struct.new(:file, :line, :class_name, :bytes_per_hour) { def to_s = "app.rb:1: <b>+1 MiB/h</b>" }
    allow(Memprof::Agent).to receive_messages(intervals: [first, second], running?: true,
      labels: AgentIntervals::LABELS, leaks: [leak.new("app.rb", 1, "String", 1_048_576.0)])
    data = ask(app, "/live/agent.json").json
    expect(data[:intervals].map { |row| row[:rss] }).to eq([nil, 300_000_000])
    expect(data[:intervals].last[:allocated][:bytes]).to eq(first.report.total_allocated_memsize)
    expect(data[:allocating].sum { |row| row[:allocated] }).to be_positive
    expect(data[:live]).to all(include(live_for: 60.0, oldest: 120.0))
    expect(data[:cost]).to include(memory: 1_000_000, percent: be_within(0.01).of(100 / 120.0))
    expect(data[:gc]).to include(minor: 6, major: 2, time: 0.5)
    page = ask(app, "/live/agent").body
    expect(page).to include("286.1 MiB</span> resident", "service shop", "RSS, at most 286.1 MiB", "1.0 MiB",
      "&lt;b&gt;+1 MiB/h&lt;/b&gt;", "0.83 % of a CPU")
    expect(page).not_to include("<b>+1 MiB")
    expect(page).not_to include(">unknown<")
    allow(Memprof::Agent).to receive(:intervals).and_return([first])
    expect(ask(app, "/live/agent").body).to include(">unknown<")
  end
end
