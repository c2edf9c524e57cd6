# frozen_string_literal: true

require "fileutils"
require "json"
require "tmpdir"

# A cache of pages that drops none, and blocks that stay subscribed: spec/support/leaky_rails.rb dumps them.
RSpec.describe "the leaks of a Rails app" do
  before(:all) do
    found = run_ruby("require 'logger'; require 'rails'; require 'action_controller/railtie'")
    skip "Rails is not installed (the package ruby-railties, the gem railties)" unless found.success?

    @directory = Dir.mktmpdir("memprof-rails-")
    @dumps = LeakyRails.dumps(@directory)
  end

  after(:all) { FileUtils.rm_rf(@directory) if @directory }

  all = 3 * LeakyRails::VISITS
  store, page, block = %i[store page block].map { |what| LeakyRails.line(what) }

  def answer(verb, *arguments)
    stdout, stderr, status = run_memprof(verb, "--format", "json", *arguments, chdir: @directory)
    expect(status.exitstatus).to eq(0), stderr
    JSON.parse(stdout)
  end

  # What is in the app's cache.
  def cache(answer)
    answer["findings"].find { |finding| finding["class"] == "Page" }
  end

  def place(site)
    [File.basename(site["file"]), site["line"]]
  end

  # Of SIGURG, and of dump_all in the binary format.
  %i[third binary].each do |name|
    it "are named by one dump, with holder, class and line (#{name})" do
      found = cache(answer("leaks", @dumps[name]))
      expect(found["sentence"]).to match(/\A#{all} Page instances retain /)
      expect(found["retained_by"]).to eq(["PageCache::PAGES -> Hash[*]"])
      expect(found["lines"].first).to include("class" => "Page", "count" => all)
      expect(place(found["lines"].first)).to eq(["app.rb", page])
    end
  end

  it "are said so to a reader" do
    stdout, _, status = run_memprof("leaks", @dumps[:third])
    expect(status.exitstatus).to eq(0)
    expect(stdout).to match(/^\d\. #{all} Page instances retain .* %\)$/)
    expect(stdout).to match(/^Retained by +PageCache::PAGES -> Hash\[\*\]$/)
    expect(stdout).to match(/^Allocated at .*app\.rb:#{page} in fetch/)
  end

  it "are what top and path name, too" do
    largest = answer("top", "--where", "type != data", "--limit", "1", @dumps[:third])["objects"].first
    expect(place(largest["site"])).to eq(["app.rb", store])
    path = answer("path", @dumps[:third], largest["address"])
    expect(path["sentence"]).to eq("PageCache::PAGES -> Hash (#{all})")
    branch = answer("path", "--where", "class = Page", @dumps[:third])
    texts = []
    while (branch = branch["branches"].first)
      texts << branch["text"]
      paths = branch["paths"]
    end
    expect([texts.last(3), paths]).to eq([["PageCache", "Hash", "Page"], all])
  end

  it "are what grows over three dumps" do
    compared = answer("leaks", *@dumps.values_at(:first, :second, :third))
    finding = compared["findings"].find { |found| found["class"] == "Page" }
    expect(finding["count"].last - finding["count"].first).to eq(2 * LeakyRails::VISITS)
    expect(finding["retained_by"]).to eq(["PageCache::PAGES -> Hash[*]"])
    expect(place(finding["own"])).to eq(["app.rb", page])
    stdout, = run_memprof("leaks", *@dumps.values_at(:first, :second, :third))
    expect(stdout).to match(/^\d\. \d+ more Page instances retain/)
    expect(stdout).to match(/^Retained by +PageCache::PAGES -> Hash\[\*\]$/)
  end

  it "are named for blocks that pile up: where they were written, what they captured, who has them" do
    procs = answer("top", "--procs", "--limit", "1", @dumps[:third])["rows"].first
    expect(place(procs)).to eq(["app.rb", block])
    expect(procs).to include("count" => all, "method" => "listen")
    captured = procs["captures"].map { |variable| variable.values_at("label", "class") }
    expect(captured).to include(["local visitor", "String"], %w[self ProductsController])
    expect(procs["path"]).to match(/ActiveSupport::Notifications.*\["sold.shop"\]/)
  end

  it "are named by the app's own line, also where gems retain its blocks" do
    findings = answer("leaks", "--threshold", "0.3", "--limit", "1000", @dumps[:third])["findings"]
    own = findings.filter_map { |finding| finding["own"] }.group_by { |found| place(found) }
    expect(own[["app.rb", block]]).to include(include("count" => be_within(2).of(all)))
    expect(own[["app.rb", page]]).to include(include("class" => "Page"))
    expect(own[["app.rb", page]].first["source"]).to eq(LeakyRails.source(:page).strip)
  end

  it "are named without lines in a dump of ObjectSpace" do
    answer = answer("leaks", @dumps[:objspace])
    found = cache(answer)
    expect(found["sentence"]).to match(/\A#{all} Page instances retain /)
    expect(found["retained_by"]).to eq(["PageCache -> Hash"])
    expect(found["lines"]).to eq([])
    expect(answer["remarks"]).to include(/\AAllocation lines are unknown: /)
  end
end
