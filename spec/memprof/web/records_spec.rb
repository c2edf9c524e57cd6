# frozen_string_literal: true

require "memprof"
require "memprof/web"
require "objspace"
require "tmpdir"

RSpec.describe Memprof::Web::Records do
  around { |example| Dir.mktmpdir { |directory| Dir.chdir(directory) { example.run } } }

  describe described_class::Tracked do
    def read(text) = described_class.read(StringIO.new(text))

    it "reads reports: sites, and their sums" do
      report = Memprof.report(stack: 16) { $kept = Array.new(20) { "kept".dup } }
      tracked = read(report.to_json)
      rows = tracked.rows("class", "retained_objects", internal: true)
      string = rows.find { |row| row[:key] == "String" }
      expect(string).to include(retained_objects: 20, freed_objects: 0)
      expect(rows.sum { |row| row[:allocated_bytes] }).to eq(report.total_allocated_memsize)
      site = tracked.rows("site", "retained_objects").first[:site]
      expect(site).to include(file: __FILE__, class: "String")
      expect(tracked.stacks?).to be(true)
      flame = tracked.flame("retained_objects")
      expect(flame[:frames].first[3]).to eq(rows.sum { |row| row[:retained_objects] })
    ensure
      $kept = nil
    end

    it "reads lines of stats" do
      tracked = read("     12 app.rb:3:String\n      2 C:/lib.rb:40:Foo::Bar\n")
      expect(tracked.rows("class", "objects")).to eq([{ key: "String", site: nil, objects: 12 },
        { key: "Foo::Bar", site: nil, objects: 2 }])
      expect(tracked.rows("site", "objects").last[:site]).to include(file: "C:/lib.rb", line: 40)
      expect(tracked.stacks?).to be(false)
    end

    it "reads collapsed stacks, and joins what begins alike" do
      tracked = read("<main> (a.rb:7);page (a.rb:5);Hash 168\n<main> (a.rb:7);page (a.rb:5);Array 40\n")
      flame = tracked.flame("weight")
      expect(flame[:names]).to eq(["all", "<main> (a.rb:7)", "page (a.rb:5)", "Hash", "Array"])
      expect(flame[:frames].map { |frame| frame.first(4) })
        .to eq([[0, 0, 0, 208], [0, 1, 0, 208], [1, 2, 0, 208], [2, 3, 168, 168], [2, 4, 40, 40]])
      expect(tracked.rows("file", "weight").map { |row| row[:key] }).to eq(["a.rb"])
    end

    it "says what it can't read" do
      ['{"format":"memprof-report"', '{"format":"memprof-report"}', "nothing\n"].each do |text|
        expect { read(text) }.to raise_error(Memprof::Error, /truncated|no sites|no tracked/)
      end
    end
  end

  it "says that a file is gone" do
    records = described_class.new
    record = records.add("nowhere.json", :trace)
    expect { record.content }.to raise_error(Memprof::Error, /cannot read nowhere.json: No such file/)
    expect { records.fetch("1", :tracked) }.to raise_error(Memprof::Web::NotFound)
    File.write("empty.json", "")
    expect { records.add("empty.json", :trace).content }.to raise_error(Memprof::Error, /no traced request/)
  end
end
