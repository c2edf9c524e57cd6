# frozen_string_literal: true

require_relative "shop"

RSpec.describe Memprof::Heap::Diff do
  let(:heaps) { Shop.heaps }
  let(:diff) { heaps[0].diff(heaps[1]) }
  let(:three) { heaps[0].diff(*heaps.drop(1)) }

  it "distinguishes new, gone and surviving objects" do
    sizes = [diff.new, diff.gone, diff.kept].map { |objects| objects.where("class = Session").size }
    expect(sizes).to eq([50, 0, 100])
    expect(diff.new.heap).to equal(heaps[1])
    expect(diff.gone.heap).to equal(heaps[0])
    expect(diff.new.size + diff.kept.size).to eq(heaps[1].size)
    expect(diff.totals[:new][:count]).to eq(diff.new.size)
  end

  it "knows what survived, of three" do
    expect(three.survived.where("class = Session").size).to eq(40)
    expect(three.retained.size).to eq(three.survived.size)
    expect(three.where("class = Session").size).to eq(40)
    expect { diff.survived }.to raise_error(ArgumentError, "this needs a third heap: heap.diff(other, later)")
  end

  it "returns what grew, by class, place and owner" do
    row = diff.grown.find { |candidate| candidate[:class] == "Session" }
    expect(row).to include(before: a_hash_including(count: 100), after: a_hash_including(count: 150),
      change: a_hash_including(count: 50))
    expect(diff.grown(limit: 1).size).to eq(1)
    expect(diff.by_class(where: "class = Session").size).to eq(1)
    expect(diff.by_site.map(&:to_s)).to include(/shop\.rb/)
    expect(diff.by_owner.first.to_s).to include("Cache::STORE").or include("Hash")
  end

  it "has the verbs of a list" do
    expect(diff.strings.size).to eq(diff.new.strings.size)
    expect(diff.filter { |object| object.class_name == "Session" }.size).to eq(50)
    expect(diff.group_by_class["Session"].size).to eq(50)
    expect(diff.top(1).size).to eq(1)
    expect(diff.sample.heap).to equal(heaps[1])
    expect(diff.inspect).to eq("#<Memprof::Heap::Diff (#{diff.new.size} objects)>")
    expect([three.before, three.after, three.later]).to eq(heaps)
  end

  it "says what is wrong" do
    expect(diff.warnings).to all(be_a(String))
    expect { heaps[0].diff("heap.json") }
      .to raise_error(ArgumentError, "heap must be a Memprof::Heap, not \"heap.json\"")
    expect { diff.ask(:nonsense) }.to raise_error(ArgumentError, /no such question about two heaps/)
    expect { diff.totals(where: "clas = A") }.to raise_error(ArgumentError, /\^/)
  end
end
