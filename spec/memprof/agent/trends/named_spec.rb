# frozen_string_literal: true

require "memprof/agent/trends"
require "json"

RSpec.describe Memprof::Agent::Trends::Named do
  let(:site) { ["/srv/shop/app/models/page.rb", 47, "String"] }
  let(:start) { 1_800_000_000.0 }
  let(:content) { { "decided" => {} } }

  def labels(release) = { service: "shop", release: release }

  def growth(rate: 20.0 * (1 << 20), hours: 6.0)
    Memprof::Agent::Trends::Judgement::Growth.new(rate, rate / 20, hours, 8, 8)
  end

  # One decision at an hour, in a new process as it were.
  def decide(hour, release, found = [[site, growth]])
    named = described_class.new(JSON.parse(JSON.generate(@content || content)))
    named.observe(labels(release), start + hour * 3600, 3600.0)
    said = named.add(found, labels(release), start + hour * 3600, 3600.0)
    @content = named.content
    said
  end

  def leaks = described_class.new(JSON.parse(JSON.generate(@content))).leaks("shop")

  it "says a leak once, and again after a day or when it doubles" do
    expect(decide(6, "a").size).to eq(1)
    expect(decide(7, "a", [[site, growth(hours: 7.0)]])).to be_empty
    expect(decide(8, "a", [[site, growth(rate: 45.0 * (1 << 20))]]).size).to eq(1)
    expect(decide(31, "a", [[site, growth(rate: 45.0 * (1 << 20))]])).to be_empty
    expect(decide(32.1, "a", [[site, growth(rate: 45.0 * (1 << 20))]]).size).to eq(1)
  end

  it "names the release that brought it if an earlier one was observed without it" do
    7.times { |hour| decide(hour, "old", []) }
    decide(14, "new")
    expect(leaks.first).to have_attributes(since: "new", release: "new")
    decide(24, "newer")
    expect(leaks.first).to have_attributes(since: "new", release: "newer")
  end

  it "does not know the release if none was observed before" do
    decide(6, "first")
    expect(leaks.first).to have_attributes(since: nil, release: "first")
  end

  it "has the hours since it began, as long as it is seen" do
    [6, 7, 8].each { |hour| decide(hour, "a") }
    expect(leaks.first.hours).to eq(8.0)
    decide(40, "a")
    expect(leaks.first.hours).to eq(6.0)
  end

  it "does not name a site that grows back to where it stopped in an earlier process" do
    grown = ->(mib) do
      found = growth
      found.share = mib * (1 << 20)
      [[site, found]]
    end
    at = ->(hour, &work) do
      described_class.new(JSON.parse(JSON.generate(@content || content))).tap do |named|
        work.call(named, start + hour * 3600)
        @content = named.content
      end
    end
    at.call(30) { |named, now| named.level({ site => 100.0 * (1 << 20) }, labels("a"), now, 3600.0) }
    # Less is there on Sunday, when it is seen again.
    at.call(40) { |named, now| named.level({ site => 50.0 * (1 << 20) }, labels("a"), now, 3600.0) }
    expect(decide(60, "b", grown.call(115))).to be_empty
    expect(decide(61, "b", grown.call(125)).size).to eq(1)
    other = { service: "blog", release: "b" }
    at.call(62) { |named, now| expect(named.add(grown.call(115), other, now, 3600.0).size).to eq(1) }
    at.call(40 + 24 * 28 + 1) { |named, now| named.level({}, labels("b"), now, 3600.0) }
    expect(decide(60 + 24 * 28, "c", grown.call(115)).size).to eq(1)
  end

  it "forgets what was not seen for a week" do
    decide(6, "a")
    decide(6 + 24 * 7 + 1, "b", [])
    expect(leaks).to be_empty
  end

  it "lets one process decide at a time" do
    decide(6, "a", [])
    named = described_class.new(JSON.parse(JSON.generate(@content)))
    expect(named.decided?("shop", start + 6 * 3600 + 100, 150)).to be(true)
    expect(named.decided?("shop", start + 6 * 3600 + 200, 150)).to be(false)
    expect(named.decided?("shop", start, 150)).to be(false)
  end

  it "ignores rows that it did not write" do
    decide(6, "a")
    good = JSON.parse(JSON.generate(@content))
    row = good["leaks"].first
    bad = [nil, 1, {}, row.merge("line" => "1"), row.merge("workers" => [1]), row.merge("seen_at" => nil),
      row.merge("file" => 5), row.merge("named_rate" => "x")]
    named = described_class.new(good.merge("leaks" => bad + [row], "releases" => ["x", { "hours" => 1 }]))
    expect(named.leaks("shop").size).to eq(1)
    broken = described_class.new({ "leaks" => 1, "releases" => nil, "decided" => [], "levels" => [1, {}] })
    expect(broken.leaks("shop")).to be_empty
    expect(broken.content[:levels]).to be_empty
  end
end
