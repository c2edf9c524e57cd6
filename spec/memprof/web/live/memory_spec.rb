# frozen_string_literal: true

require "memprof/web"
require "rack"

RSpec.describe "The page of the memory of a process" do
  include WebBrowser

  let(:heaps) { Memprof::Web::Heaps.new(live: Memprof::Web::Live.new) }
  let(:app) { Memprof::Web.new(heaps: heaps, gate: WebBrowser::Open.new) }

  it "shows where the memory of the process goes" do
    data = ask(app, "/live/memory.json").json
    if File.readable?("/proc/self/smaps")
      expect(data[:ledger][:items].sum { |item| item[:bytes] }).to eq(data[:ledger][:rss])
      expect(ask(app, "/live/memory").body).to include("instruction sequences", " resident, ")
    end
    expect(data).to include(:cluster, recording: false, pid: Process.pid)
    expect(data[:heap_pages].sum { |row| row[:used] }).to be > 1000
    expect(ask(app, "/live").body).to include(%(href="/live/memory"))
    expect(ask(app, "/live/memory?sort=x").status).to eq(400)
    expect(ask(app, "/live/malloc?location=app.rb:1").status).to eq(404)
    expect(ask(app, "/live/malloc").status).to eq(400)
  end

  # Recording is global; the suite's own process must not record. What the code prints, by line.
  def printed_by(code)
    skip "malloc is recorded on Linux" unless RUBY_PLATFORM.include?("linux")
    result = run_ruby(<<~RUBY, ruby_args: ["-I#{File.expand_path("../../../support", __dir__)}"])
      require "memprof/web"
      require "rack"
      require "web_browser"
      include WebBrowser
      app = Memprof::Web.new(heaps: Memprof::Web::Heaps.new(live: Memprof::Web::Live.new), gate: WebBrowser::Open.new)
      #{code}
    RUBY
    expect(result.stderr).to eq("")
    result.stdout.lines(chomp: true)
  end

  it "calls numbers estimates if malloc is recorded by samples" do
    expect(printed_by(<<~'RUBY')).to eq([
      Memprof::Malloc.start(sample: "4 KiB")
      kept = Array.new(7) { "x" * 50_000 }
      p ask(app, "/live/memory.json").json[:sample]
      puts ask(app, "/live/memory").body[/All numbers are estimates: .*average\./]
      puts ask(app, "/live/malloc?location=-e:7").body.gsub(/<[^>]+>/, "")[/Only sampled blocks .* average/]
    RUBY
      "4096", "All numbers are estimates: they come from samples, one every 4.0 KiB on average.",
      "Only sampled blocks are listed, one every 4.0 KiB on average"
    ])
  end

  it "records malloc, and shows locations and their live blocks" do
    expect(printed_by(<<~'RUBY')).to match([
      post = ->(path) { ask(app, path, method: "POST", headers: { "Sec-Fetch-Site" => "same-origin" }).location[/done=(\w+)/, 1] }
      ask(app, "/live/memory")
      puts Array.new(2) { post.call("/live/malloc/start") }.join(" ")
      kept = Array.new(7) { "x" * 50_000 }
      page = ask(app, "/live/memory.json?location=-e:9")
      p page.json[:rows].map { |row| row.values_at(:location, :live, :blocks, :frees) }
      p page.json[:recording]
      puts ask(app, "/live/memory?location=-e:9").body[%r{/live/malloc\?location=([^"&]+)}, 1]
      blocks = ask(app, "/live/malloc.json?location=-e:9").json[:rows].select { |row| row[:size] == 50_001 }
      p [:count, :bytes].map { |key| blocks.sum { |row| row[key] } }
      puts %w[reset stop stop].map { |action| post.call("/live/malloc/#{action}") }.join(" ")
      p ask(app, "/live/memory?done=stopped&pid=#{$$}").body.include?("has stopped recording malloc.")
    RUBY
      "recording already", /\A\[\["-e:9", 350\d{3}, [78], \d\]\]\z/, "true", "-e%3A9", "[7, 350007]",
      "reset stopped idle", "true"
    ])
  end
end
