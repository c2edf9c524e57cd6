# frozen_string_literal: true

require "memprof/web/filter"
require "memprof/heap"

RSpec.describe Memprof::Web::Filter do
  let(:heap) { Memprof::Heap.capture(gc: false) }

  it "writes texts as the language reads them" do
    ["it's \"so\"", "back\\slash", "two\nlines\r\t", "\e[1m\u0001 \u0085 é \u{1f600}"].each do |text|
      kept = text.dup
      expect(heap.where("value = #{described_class.quoted(kept)}").size).to be_positive, text.inspect
    end
  end

  it "writes what contains a text in any case" do
    texts = ["It's \"SO\"", "back\\slash/[x]", "two\nlines\r\t", "\e[1m\u0001 a-b#c <d> é {2}"]
    kept = texts.map { |text| "before #{text} behind" }
    texts.zip(kept) do |text, whole|
      filter = described_class.contains("value", text.swapcase)
      expect(heap.where(filter).map(&:value)).to include(whole), filter
    end
    expect(described_class.contains("name", "x" * 5000)).to start_with('name ~ "xxx')
    expect(described_class.root('a "root"')).to eq('root = "a \\"root\\""')
  end

  it "writes places" do
    expect(described_class.site(file: 'a"b.rb', line: 3)).to eq('file = "a\\"b.rb" and line = 3')
    expect(described_class.site(file: "a.rb", line: 0)).to eq('file = "a.rb"')
  end

  it "combines filters with and" do
    expect(described_class.all(nil, nil)).to be_nil
    expect(described_class.all("a = 1 or b = 2", nil)).to eq("a = 1 or b = 2")
    expect(described_class.all("old", "line = 1 or line = 2")).to eq("old and (line = 1 or line = 2)")
  end

  it "chooses what is in a namespace" do
    expect(heap.where(described_class.namespace("Memprof")).map(&:class_name).uniq)
      .to all(match(/\AMemprof(::|\z)/))
  end
end
