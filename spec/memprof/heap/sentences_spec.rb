# frozen_string_literal: true

require "spec_helper"

RSpec.describe Memprof::Heap::Sentences do
  def remark(name, **fields) = described_class.remark({ remark: name, **fields })

  def because(name, **fields)
    answer = { findings: [{ why: { mechanism: name, **fields } }] }
    described_class.complete(answer)[:findings].first[:why]
  end

  # The variants of an enum in Rust, as they are named in JSON, with their fields.
  def variants(file, enum)
    source = File.read(File.join(ChildRuby::ROOT, "crates", file))[/^pub enum #{enum} \{\n(.*?)^\}/m, 1]
    names = source.scan(/^    ([A-Z]\w+)(?: \{\n(.*?)^    \})?/m).to_h
    names.to_h do |name, fields|
      [name.gsub(/(?<!\A)[A-Z]/) { "_#{_1}" }.downcase, fields.to_s.scan(/^        (\w+): (.+),$/)]
    end
  end

  def sample(type)
    case type
    when "Tracking" then "off"
    when /Vec/ then ["names"]
    when /String|str/ then "it"
    else 5
    end
  end

  def samples(fields) = fields.to_h { |name, type| [name.to_sym, sample(type)] }

  it "has a sentence for each remark of the extension" do
    names = variants("memprof-analysis/src/questions/remark.rs", "Remark")
      .merge(variants("memprof-profile/src/compare.rs", "Warning"))
    expect(names.size).to be > 20
    names.each do |name, fields|
      values = samples(fields)
      values[:setting] &&= "ruby"
      expect(remark(name, **values)).to match(/\A\S.*(?:\.|is unknown)\z/)
    end
  end

  it "has a clause for each mechanism of the extension" do
    names = variants("memprof-analysis/src/questions/verdict/why.rs", "Why")
    expect(names.size).to be >= 20
    names.each { |name, fields| expect(because(name, **samples(fields))).to match(/\A[^A-Z%]*.+[a-z)\d]\z/) }
  end

  it "writes numbers for people" do
    expect(remark("own_objects", count: 1, size: 40)).to eq("1 object of memprof itself (40 B) not counted.")
    expect(remark("skipped", unit: "line", count: 3000, first: 17))
      .to eq("Skipped 3,000 lines that cannot be read (the first: line 17).")
    expect(remark("few_lines", percent: 1.25)).to include("only 1.2 % of the objects")
  end

  it "says where threads are, and whether they end, if that is known" do
    running = ->(**fields) { because("running", unended: nil, frame: nil, count: 0, **fields) }
    expect(running.call(unended: "threads")).to eq("threads that do not end")
    expect(running.call(unended: "fibers", frame: "app.rb:3", count: 1200))
      .to eq("fibers that do not end; 1,200 are at app.rb:3")
    expect(running.call(frame: "app.rb:3", count: 1)).to eq("one is at app.rb:3")
  end

  it "names the one before it, if a block captures no variable" do
    expect(because("block", place: "app.rb:3", captured: nil))
      .to eq("the block written at app.rb:3 captures the one before it")
  end

  it "says how much compaction could return" do
    row = { nearly_empty_pages: 20, nearly_empty_objects: 20 }
    answer = { fill: 0.1, pages: 20, size: 20 << 16, percent: 95.0, returnable: 19 << 16, rows: [row] }
    expect(described_class.complete(answer)[:sentence])
      .to eq("0 % of the slots in 20 pages (1.2 MiB) are used. Nearly empty: 20 pages with 20 objects. " \
        "Compaction (GC.compact) could return 1.2 MiB (95 %) to the system.")
    answer = { fill: 99.6, pages: 1, size: 1 << 16, percent: 0.0, returnable: 0, rows: [row] }
    expect(described_class.complete(answer)[:sentence])
      .to eq("100 % of the slots in 1 page (64.0 KiB) are used: the heap is not fragmented.")
  end
end
