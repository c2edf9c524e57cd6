# frozen_string_literal: true

require "memprof/agent/trends"
require "tmpdir"

RSpec.describe Memprof::Agent::Trends do
  let(:parent) { Dir.mktmpdir("memprof-trends-") }
  let(:directory) { File.join(parent, "trends") }
  let(:start) { 1_800_000_000.0 }
  let(:site) { ["/srv/shop/app/models/page.rb", 47, "String"] }

  after { FileUtils.rm_rf(parent) }

  # Each interval allocates as many objects.
  def trends(holder: ->(*) { "PAGES -> Hash[*]" })
    objects = 0
    described_class.new(directory: directory, holder: holder, allocated: -> { objects += 1000 })
  end

  # An interval of five minutes whose report has some sites with live bytes, which are never freed.
  def interval(point, sites, release: "a", service: "shop", stack: [])
    rows = sites.map do |(file, line, class_name), bytes|
      instance_double(Memprof::Report::Site, file: file, line: line, class_name: class_name,
        retained_bytes: bytes.round, stack: stack)
    end
    Struct.new(:started_at, :duration, :report, :errors, :ages, :labels, :gc).new(
      Time.at(start + (point - 1) * 300), 300.0, Struct.new(:sites).new(rows), rows.map { [0.0] * 4 },
      rows.map { [point * 150.0, point * 300.0] }, { service: service, release: release, worker: 1, pid: 1 },
      { minor: 9, major: 1 }
    )
  end

  def run(trends, points, step: 1.0, **options)
    trends = Array(trends)
    said = points.flat_map do |point|
      trends.flat_map { |each| each.add(interval(point, { site => point * step * 1e6 }, **options)) }
    end
    said + trends.flat_map { |each| each.flush(20) }
  end

  it "names a site that grows once, with holder, in this process" do
    leaking = trends
    said = run(leaking, 0..70)
    expect(said.size).to eq(1)
    expect(said.first.to_s)
      .to match(%r{page.rb:47: \+11 MiB/h for \d.* h in 1 of 1 worker, String in PAGES, in release a\z})
    expect(leaking.leaks.map(&:holder)).to eq(["PAGES -> Hash[*]"]).or eq([nil])
    expect(run(leaking, 71..82)).to be_empty
    expect(leaking.leaks.map(&:holder)).to eq(["PAGES -> Hash[*]"])
  end

  it "adds up the workers of a service, so that a leak too small for one is named" do
    workers = Array.new(8) { trends }
    said = run(workers, 0..70, step: 0.22)
    expect(said.map(&:workers)).to eq([[8, 8]])
    expect(workers.map { |each| each.leaks.size }).to include(1)
    FileUtils.rm_rf(directory)
    expect(run(trends, 0..70, step: 0.22)).to be_empty
  end

  it "keeps services and releases apart" do
    one = trends
    other = trends
    (0..70).each do |point|
      one.add(interval(point, { site => point * 5e4 }, service: "shop"))
      other.add(interval(point, { site => point * 5e4 }, service: "blog"))
    end
    expect([one, other].flat_map { |each| each.flush(20) + each.leaks }).to be_empty
  end

  it "begins anew after a restart, and does not name the leak again" do
    expect(run(trends, 0..70).size).to eq(1)
    # Another process, in the next release.
    again = trends
    said = (80..150).flat_map do |point|
      again.add(interval(point, { site => (point - 80) * 1e6 }, release: "b"))
    end
    expect(said + again.flush(20)).to be_empty
    expect(again.leaks.map { |leak| [leak.release, leak.since] }).to eq([["b", nil]])
  end

  it "names nothing in a healthy service" do
    healthy = trends
    random = Random.new(3)
    said = (0..288).flat_map do |point|
      sites = {
        site => 5e7 + random.rand(1e6), ["cache.rb", 1, "Hash"] => 5e7 * (1 - Math.exp(-point / 20.0)),
        ["log.rb", 1, "String"] => point % 20 * 1e6, ["step.rb", 1, "Array"] => point > 60 ? 1e8 : 1e6
      }
      healthy.add(interval(point, sites))
    end
    expect(said + healthy.flush(20)).to be_empty
  end

  it "uses the line of the application, if the stack has one" do
    gem = ["/usr/lib/ruby/gems/3.1.0/gems/rack-3.0/lib/rack.rb", 3, "String"]
    said = []
    leaking = trends
    (0..70).each do |point|
      stack = ["#{gem[0]}:3:in call", "/srv/shop/app/models/page.rb:47:in fetch"]
      said.concat(leaking.add(interval(point, { gem => point * 1e6 }, stack: stack)))
    end
    expect((said + leaking.flush(20)).map(&:location)).to eq(["/srv/shop/app/models/page.rb:47"])
  end

  it "leaves the holder unknown if it can't be found, and says the leak all the same" do
    said = run(trends(holder: ->(*) { raise Memprof::Error, "no room" }), 0..70)
    expect(said.map(&:holder)).to eq([nil])
    expect(run(trends(holder: nil), 100..175)).to be_empty
  end

  it "no longer counts as a worker when it is closed" do
    leaking = trends
    run(leaking, 0..3)
    expect(Dir.children(directory).grep(/trends-\d/).size).to eq(1)
    leaking.close
    expect(Dir.children(directory).grep(/trends-\d/)).to be_empty
  end
end
