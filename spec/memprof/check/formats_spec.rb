# frozen_string_literal: true

require "memprof/check/comparison"
require "memprof/check/github"
require "memprof/check/junit"
require "memprof/check/limits"
require "rexml/document"

RSpec.describe Memprof::Check::Limits do
  def report(file, objects, retained = 0)
    amounts = [objects, retained].map { |number| { objects: number, bytes: number * 40 } }
    site = { file: file, line: 7, method: "A#x", class: "Hash<a>,b:\n%", allocated: amounts.first,
             retained: amounts.last }
    JSON.generate(format: "memprof-report", version: 1, meta: { directory: "/srv" }, sites: [site])
  end

  def comparison(before, after, file: "/srv/app/a,b.rb")
    Memprof::Check::Comparison.new([["before", report(file, *before)]], [["after", report(file, *after)]])
  end

  def failed(before, after, **limits)
    described_class.new(**limits).judge(comparison(before, after)).select(&:failed).map(&:text)
  end

  it "reads percentages, and numbers of objects or bytes" do
    expect(%w[2% 0.5 10\ %].map { |text| described_class.percent(text) }).to eq([2, 1/2r, 10])
    expect { described_class.percent("-1%") }.to raise_error(ArgumentError)
    expect(described_class.retained("100")).to eq([:retained_objects, 100])
    expect(described_class.retained("1MiB")).to eq([:retained_bytes, 1 << 20])
    expect { described_class.retained("many") }.to raise_error(ArgumentError)
  end

  it "fails above the limit, not at it" do
    expect(failed([100], [102], max_increase: 2r)).to eq([])
    expect(failed([100], [103], max_increase: 2r).join)
      .to include("from 100 objects to 103 objects (+3.0 %); at most +2 % allowed")
    expect(failed([100], [50], max_increase: 0r)).to eq([])
    expect(failed([0], [1], max_increase: 50r).size).to eq(2)
    expect(failed([5], [500])).to eq([])
    expect(failed([1, 1], [1, 9], max_retained: [:retained_objects, 8]))
      .to eq(["9 objects retained; at most 8 objects allowed"])
  end

  it "says by so many digits that the limit is exceeded" do
    text = ->(after, max) { failed([100_000], [after], max_increase: max).first[/\(.*\z/] }
    expect(text.call(102_006, 2r)).to eq("(+2.01 %); at most +2 % allowed")
    expect(text.call(102_001, 2r)).to eq("(+2.001 %); at most +2 % allowed")
    expect(text.call(102_060, 2r)).to eq("(+2.1 %); at most +2 % allowed")
    expect(text.call(100_001, 0r)).to eq("(+0.001 %); at most +0 % allowed")
  end

  it "writes commands of GitHub Actions, which a name cannot break" do
    github = ->(compared, **options) { Memprof::Check::Github.new(compared, [], **options).to_s }
    expect(github.call(comparison([1], [3]), directory: "/srv/app", workspace: "/srv"))
      .to eq("::warning file=app/app/a%2Cb.rb,line=7,title=memprof::+2 objects (+80 B) allocated: " \
             "Hash<a>,b:\\n%25 in A#x\n")
    gem = comparison([1], [3], file: "/g/gems/rack-3.0/lib/rack.rb")
    expect(github.call(gem)).to match(%r{\A::warning title=memprof::\+2 objects .* at rack/lib/rack\.rb:7$})
    expect(github.call(comparison([3], [1]))).to eq("")
  end

  it "warns on GitHub of no unchanged line that makes no difference" do
    zero = { before: 0, after: 0, change: 0 }
    none = Memprof::Check::Comparison::MEASURES.to_h { |measure| [measure, zero] }
    line = ->(match, **changes) do
      { file: "app.rb", line: 1, class: "String", method: "A#x", own: true, match: match, was: nil, **none,
        **changes.transform_values { |change| { before: 1000, after: 1000 + change, change: change } } }
    end
    lines = [
      line.call("same", allocated_bytes: 6), line.call("moved", allocated_bytes: 99, allocated_objects: 9),
      line.call("same", allocated_bytes: 100), line.call("moved", retained_objects: 10),
      line.call("new", allocated_bytes: 40, allocated_objects: 1), line.call("nearest", allocated_bytes: 6)
    ].each.with_index(1) { |each, number| each[:line] = number }
    totals = {
      allocated_bytes: { before: 10_000 }, allocated_objects: { before: 1000 },
      retained_bytes: { before: 10_000 }, retained_objects: { before: 1000 }
    }
    compared = instance_double(Memprof::Check::Comparison, lines: lines, totals: totals)

    warnings = Memprof::Check::Github.new(compared, []).to_s
    expect(warnings.scan(/line=(\d+)/).flatten).to eq(%w[3 4 5])
  end

  it "writes JUnit's XML, which a name cannot break" do
    compared = comparison([1], [3])
    outcomes = described_class.new(max_increase: 2r).judge(compared)
    document = REXML::Document.new(Memprof::Check::Junit.new(compared, outcomes).to_s)

    expect(%w[tests failures].map { |name| document.root.attributes[name] }).to eq(%w[4 2])
    expect(document.elements["//testcase[@name='allocated objects']/failure"].text)
      .to eq("app/a,b.rb:7: +2 objects (+80 B) allocated: Hash<a>,b:\\n% in A#x")
  end
end
