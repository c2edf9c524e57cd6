# frozen_string_literal: true

require "base64"
require "digest"
require "memprof"
require "memprof/cli"
require "memprof/web"
require "memprof/web/report"
require "tmpdir"

RSpec.describe Memprof::Web::Report do
  include HeapDumps

  around { |example| Dir.mktmpdir { |directory| Dir.chdir(directory) { example.run } } }

  # The status of `memprof export`, and what it says.
  def export(*arguments)
    said = StringIO.new
    terminal = Memprof::CLI::Terminal.new(out: StringIO.new, err: said)
    [Memprof::CLI.command("export", terminal).start(arguments), said.string]
  rescue Memprof::CLI::UsageError => e
    [2, e.message]
  end

  def report(*arguments)
    status, said = export(*arguments, "--force", "report.html")
    expect([status, said]).to match([0, /report\.html: [\d.]+ KiB/])
    File.read("report.html")
  end

  # Texts and attributes without markup have no quotes and no angle brackets.
  def check(html)
    expect(html.scan(/<(?:script|link|img|iframe|form|button|nav|a\b)/)).to eq([])
    expect(html.scan(/ (?:href|src|action|style|on\w+|data-[\w-]+)=|url\((?!#)|@import/)).to eq([])
    expect(html.bytesize).to be < 2 << 20
    policy = html[/Content-Security-Policy" content="([^"]*)"/, 1]
    digest = Digest::SHA256.base64digest(html[%r{<style>(.*?)</style>}m, 1])
    expect(policy.gsub("&#39;", "'")).to start_with("default-src 'none'; style-src 'sha256-#{digest}';")
    %w[article section table svg span details div].each do |name|
      expect(html.scan(/<#{name}\b/).size).to eq(html.scan("</#{name}>").size), name
    end
  end

  def headings(html) = html.scan(%r{<h2[^>]*>(.*?)</h2>}m).flatten

  it "has the verdict, tables and a flame graph of a dump" do
    html = report(cache_dump)
    check(html)
    expect(headings(html)).to eq(["What is large", "cache-1.memprof", "Objects by class", "Objects",
      "Flame graph of retained sizes", "Slots"])
    expect(html).to include("1,000 Session instances retain", 'class="treemap"', 'class="icicle"',
      "Contents of strings are left out.", "Session.new(visitor)", "memprof leaks #{cache_dump}</code>")
    total = Memprof::Heap.open(cache_dump).size
    expect(html).to include("The list has #{Memprof::Units.count(total)} rows; these are the first 50.")
  end

  it "compares two dumps, and three" do
    html = report(cache_dump(1), cache_dump(2))
    check(html)
    expect(headings(html).first(2)).to eq(["1 finding, in 2 dumps", "cache-1.memprof → cache-2.memprof"])
    expect(html).to include("2,000 more Session instances retain", "Old objects that retain new ones")
    expect(html).not_to include("Compare other heaps")
    expect(headings(report(*[1, 2, 3].map { |number| cache_dump(number) }))[1]).to end_with("cache-3.memprof")
  end

  it "has contents of strings only if asked" do
    result = run_ruby(<<~RUBY, args: ["secret.memprof"])
      require "memprof"
      $cards = Array.new(5000) { "card 4111 1111".dup }
      Memprof.dump_all(ARGV[0], values: :full)
    RUBY
    expect(result).to be_success
    expect(report("secret.memprof").scan(/4111 1111/)).to eq([])
    shown = report("secret.memprof", "--show-contents")
    check(shown)
    expect(["4111 1111", "strings are left out"].map { |text| shown.include?(text) }).to eq([true, false])
  end

  it "is also about other files" do
    tracked = Memprof.report(stack: 8) { $made = Array.new(30) { |number| number.to_s * 9 } }
    File.write("one.json", tracked.to_json)
    File.write("requests.json", "#{JSON.generate(start: 1_700_000_000_000_000, time: 0.5,
      tracers: { objects: { created: 9, bytes: 360 } }, rails: { controller: "users", action: "show" },
      request: { PATH_INFO: "/users/1", REQUEST_METHOD: "GET" }, response: { code: 200 })}\n")
    { "one.json" => ["one.json", "Allocations by call stack"],
      "requests.json" => ["requests.json"] }.each do |file, titles|
      html = report(file)
      check(html)
      expect(headings(html)).to eq(titles)
    end
    expect(export("one.json", "requests.json", "two-report.html"))
      .to eq([2, "a report compares at most 3 heap dumps or two JSON reports, or is about one other file"])
  ensure
    $made = nil
  end

  it "compares two reports" do
    [10, 40].each do |times|
      tracked = Memprof.report(stack: 8) { $made = Array.new(times) { |number| number.to_s * 9 } }
      File.write("#{times}.json", tracked.to_json)
    end
    html = report("10.json", "40.json")
    check(html)
    expect(headings(html)).to eq(["10.json → 40.json", "Allocations by call stack", "40.json"])
    expect(html).to match(/\+\d+ objects \(\+[\d.]+ [KM]?i?B\) allocated, \+30 objects/)
    expect(html).to include("report_spec.rb:", "memprof diff 10.json 40.json</code>")
    expect(html).not_to match(/Compare with|do not compare|changes since/)
  ensure
    $made = nil
  end

  it "refuses other files, options without a meaning, and to replace a file" do
    File.write("text", "hello\n")
    expect(export("text", "report.html"))
      .to match([2, /\Atext is not a file that memprof shows; expected a heap dump, /])
    expect(export("none", "report.html")).to eq([2, "cannot read none: no such file"])
    expect(export("report.html")).to match([2, /\AOUT is missing/])
    expect(export("--limit", "3", cache_dump, "report.html")).to eq([2, "--limit does not apply to reports"])
    expect(export("--show-contents", cache_dump, "heap.dot")).to eq([2, "--show-contents needs a report"])
    File.write("report.html", "")
    expect(export(cache_dump, "report.html")).to match([2, /already exists/])
    expect(Dir.children(".").sort).to eq(%w[report.html text])
  end

  it "says that a dump is truncated" do
    File.binwrite("cut.memprof", File.binread(cache_dump, File.size(cache_dump) * 9 / 10))
    [[], ["--show-contents"]].each do |options|
      expect(export(*options, "cut.memprof", "report.html", "--force"))
        .to match([2, /cut.memprof.* truncated/])
    end
  end

  it "leaves out what would make it too large, and says so" do
    heaps = Memprof::Web::Heaps.new
    heaps.add(cache_dump).heap(patience: 120)
    html = described_class.new(heaps, most: 60_000).to_html
    expect(html.bytesize).to be <= 60_000
    expect(html).to match(/Left out, as the report would be too large: .*Slots\./)
    expect(headings(html).first).to eq("What is large")
  end
end
