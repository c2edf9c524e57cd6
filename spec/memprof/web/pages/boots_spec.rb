# frozen_string_literal: true

require "fileutils"
require "json"
require "memprof/web"
require "rack"
require "tmpdir"

RSpec.describe "the requires of a boot in Memprof::Web" do
  include WebBrowser

  before(:all) do
    @directory = Dir.mktmpdir("memprof-boot-page-")
    gem = File.join(@directory, "gems", "shop-1.0", "lib")
    FileUtils.mkdir_p(gem)
    File.write(File.join(gem, "shop.rb"), "require 'large'\nSHOP = 'x' * 10\n")
    File.write(File.join(gem, "large.rb"), "LARGE = Array.new(20_000) { 'large'.dup }\n")
    File.write(File.join(gem, "later.rb"), "LATER = Array.new(9_000) { 'later'.dup }\n")
    @file = File.join(@directory, "boot.json")
    _, stderr, status = run_memprof("boot", "--json", "-o", @file, "--until", "shop", "--",
      RbConfig.ruby, "-I#{gem}", "-e", "require 'shop'; require 'later'", chdir: @directory)
    raise stderr unless status.success?
  end

  after(:all) { FileUtils.rm_rf(@directory) }

  let(:answer) { JSON.parse(File.read(@file), symbolize_names: true) }
  let(:app) do
    web_app.tap { |app| app.heaps.records.add(@file, Memprof::FileKind.of(@file)) }
  end

  def json(path) = ask(app, path.sub(/(\?|\z)/, '.json\1')).json

  # Files of the answer by name.
  def each_file(file, &block)
    yield file
    file[:requires].each { |below| each_file(below, &block) }
  end

  it "is recognised" do
    expect(Memprof::FileKind.of(@file)).to eq(:boot)
    expect(ask(app, "/boots").headers["location"]).to end_with("/boots/1")
  end

  it "has the tree with the numbers of the command" do
    data = json("/boots/1?min=0")
    expect(data[:total]).to eq(answer[:total])
    expected = []
    each_file(answer[:boot]) { |file| expected << [file[:total], file[:self], file[:seconds], file[:rss]] }
    expect(data[:requires].map { |row| row.values_at(:total, :self, :seconds, :rss) }).to eq(expected)
    names = data[:requires].map { |row| [row[:file], row[:depth]] }
    expect(names).to include(["shop-1.0/lib/shop.rb", 1], ["shop-1.0/lib/large.rb", 2])
    expect(data[:after_boot].map { |row| row[:file] }).to include("shop-1.0/lib/later.rb")
    expect(data[:gems].find { |gem| gem[:gem] == "shop-1.0" }).to include(files: 3)
    expect(data[:files].first).to include(file: "shop-1.0/lib/large.rb")
  end

  it "leaves out what is small, and shows the rest to people" do
    data = json("/boots/1?min=50")
    names = data[:requires].map { |row| row[:file] }
    expect(names).to eq(["-e", "shop-1.0/lib/shop.rb", "shop-1.0/lib/large.rb"])
    page = ask(app, "/boots/1")
    expect(page.status).to eq(200)
    expect(page.body).to include("shop-1.0/lib/large.rb", "Loaded after boot", "By gem",
      Memprof::Units.bytes(answer[:total][:retained_bytes]))
    expect(ask(app, "/boots/1?sort=code_bytes").body).to include('aria-current="true"')
    %w[min=x min=101 sort=x].each { |wrong| expect(ask(app, "/boots/1?#{wrong}").status).to eq(400) }
  end

  it "is a flame graph, whose frames add up" do
    %w[retained_bytes retained_objects code_bytes].each do |value|
      data = json("/boots/1/flame?value=#{value}")
      sums = Hash.new(0)
      data[:frames].each_with_index { |frame, index| sums[frame[0]] += frame[3] if index.positive? }
      totals = data[:frames].map { |frame| frame[3] }
      own = data[:frames].map { |frame| frame[2] }
      expect(totals).to eq(own.each_index.map { |index| own[index] + sums[index] })
      expect(totals.first).to eq(answer[:total][value.to_sym])
    end
    expect(ask(app, "/boots/1/flame").body).to include("<svg", "shop-1.0/lib/large.rb")
  end

  it "says what it can't read" do
    no_number = { total: { retained_bytes: "many" } }
    wrong = [answer.merge(no_number), answer.merge(gems: 3), { format: "memprof-boot" }, [1]]
    deep = "{\"boot\":#{"{\"requires\":[" * 5_000}"
    ['{"format":"memprof-boot"', deep, *wrong.map { |numbers| JSON.generate(numbers) }].each do |text|
      expect { Memprof::Web::Records::BootRecord.read(StringIO.new(text)) }
        .to raise_error(Memprof::Error, /truncated|not a report of memprof boot/), text[0, 60]
    end
  end
end
