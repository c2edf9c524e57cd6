# frozen_string_literal: true

require_relative "shop"

RSpec.describe Memprof::Heap::Objects do
  let(:heap) { Shop.heap }
  let(:sessions) { heap.where("class = Session") }

  it "enumerates repeatedly" do
    expect(sessions.size).to eq(100)
    expect(sessions.map(&:class_name).uniq).to eq(["Session"])
    expect(sessions.each.next).to eq(sessions.first)
    expect(sessions.each.size).to eq(100)
    expect(heap.objects.count).to eq(heap.objects.each.to_a.size).and eq(heap.size)
    expect(sessions.lazy.map(&:retained).first(2).size).to eq(2)
    expect(sessions.count { |session| session.size > 0 }).to eq(100)
  end

  it "has parts by place" do
    all = sessions.to_a
    expect(sessions.first).to eq(all.first)
    expect(sessions.first(3)).to eq(all.first(3))
    expect([sessions[0], sessions[-1], sessions[100], sessions[-101]]).to eq([all[0], all[-1], nil, nil])
    expect([sessions[98, 5], sessions[2..4]]).to eq([all[98, 5], all[2..4]])
    expect([sessions.last, sessions.last(2)]).to eq([all.last, all.last(2)])
    expect(heap.where("length > 1TiB")).to have_attributes(first: nil, last: nil, empty?: true, sample: nil)
  end

  it "draws samples" do
    random = Random.new(1)
    expect(sessions.sample(random: random).class_name).to eq("Session")
    expect(sessions.sample(10, random: random).uniq.size).to eq(10)
    expect(sessions.sample(1000).size).to eq(100)
  end

  it "chooses by filters and blocks" do
    strings = heap.strings
    long = strings.where("length = 1000")
    expect(long.size).to be >= 300
    expect(long.where("file ~ 'shop.rb'").size).to eq(303)
    expect(strings.filter { |string| string.length == 1000 }.to_a).to eq(long.to_a)
    expect(strings.reject { |string| string.length == 1000 }.size).to eq(strings.size - long.size)
    expect(strings.select).to be_a(Enumerator)
    expect { strings.where("length >") }.to raise_error(ArgumentError, /length >\n/)
  end

  it "sums, without counting twice" do
    expect(sessions.sum(:size)).to eq(sessions.sum(&:memsize)).and eq(sessions.memsize)
    expect(sessions.sum(:retained)).to eq(sessions.map(&:retained).sum)
    both = sessions | sessions.first.retains
    expect(both.size).to be > 100
    expect(both.retained).to eq(sessions.retained)
    expect(sessions.sum(0.5) { 1 }).to eq(100.5)
    expect { sessions.sum(:colour) }
      .to raise_error(ArgumentError, /unknown field "colour" for a sum or an order; expected one of: size/)
  end

  it "sorts" do
    by_size = heap.strings.top(3, by: :size)
    expect(by_size.map(&:size)).to eq(heap.strings.map(&:size).max(3))
    expect(heap.strings.top(0).size).to eq(0)
    expect(sessions.top(1000).size).to eq(100)
    expect { sessions.top(3, by: :colour) }.to raise_error(ArgumentError)
  end

  it "groups by class" do
    groups = heap.objects.group_by_class
    expect(groups["Session"].to_a).to eq(sessions.to_a)
    expect(groups.values.sum(&:size)).to eq(heap.size)
    expect(groups.values.map(&:size)).to eq(groups.values.map(&:size).sort.reverse)
  end

  it "is a set" do
    strings = heap.strings
    few = strings.where("length = 1000")
    expect((strings & few).to_a).to eq(few.to_a)
    expect((strings - few).size).to eq(strings.size - few.size)
    expect((few | strings).size).to eq(strings.size)
    expect(strings.include?(few.first)).to be(true)
    expect(strings.include?(heap.arrays.first)).to be(false)
    expect { strings & Shop.heaps.last.strings }
      .to raise_error(ArgumentError, "these are objects of two heaps")
  end

  it "prints few of many" do
    expect(sessions.inspect).to eq("#<Memprof::Heap::Objects (100 objects)>")
    expect(PP.pp(sessions, +"")).to include("... (96 more)")
    expect(PP.pp(heap.roots, +"")).to include("#<ROOT vm>")
  end
end
