# frozen_string_literal: true

require_relative "shop"

RSpec.describe Memprof::Heap::Object do
  let(:heap) { Shop.heap }
  let(:session) { heap.where("class = Session").first }
  let(:guest) { heap.where("class = Guest").first }

  it "returns what it is" do
    expect(session).to have_attributes(type: :object, type_str: "OBJECT", class_name: "Session", line: 12,
      file: a_string_ending_with("shop.rb"), location: a_string_ending_with("shop.rb:12"),
      method_name: "fetch", generation: a_kind_of(Integer), name: nil, value: nil, root?: false,
      reachable?: true)
    expect(session.address).to match(/\A0x\h+\z/)
    expect(session.klass).to have_attributes(name: "Session", type: :class)
    expect(guest.klass.superclass.name).to eq("Session")
    expect(guest.klass.superclass.superclass.superclass.superclass).to be_nil
    expect(session.slot_size).to be >= 40
    expect(session.retained).to be > 3000
  end

  it "returns what a string has" do
    string = heap.where('value = "user:7"').first
    expect(string).to have_attributes(value: "user:7", length: 6, frozen?: false, class_name: "String")
    expect(string.inspect).to eq("#<STRING #{string.address} \"user:7\">")
    expect(string.to_s).to eq('String "user:7"')
    frozen = heap.where('value = "of them"').first
    expect([frozen.frozen?, frozen.flags.include?(:frozen), frozen.wb_protected?]).to eq([true, true, true])
  end

  it "follows references, by their labels" do
    expect(session.references.map(&:label)).to eq(["@user", "@pages"])
    expect(session.reference("@user").value).to match(/\Auser:\d+\z/)
    expect(session.reference("@nothing")).to be_nil
    pages = session.reference("@pages")
    expect(pages.references.map(&:label)).to eq(%w[[0] [1] [2]])
    expect(pages.references.last.label).to eq("[2]")
    expect(pages.referrers.map { |holder| [holder, holder.label] }).to eq([[session, "@pages"]])
    expect(pages.inverse_references.to_a).to eq([session])
    expect(session.label).to be_nil
  end

  it "has the same referrers however often it is asked" do
    expected = session.referrers.to_a
    expect(Array.new(20) { session.referrers.to_a }.uniq).to eq([expected])
  end

  it "has its referrers, and its references" do
    path = session.path
    expect(path.to_s).to match(/\ACache::STORE -> Hash\["key:\d+"\] -> Session\z/)
    expect(path.map(&:label).last(2)).to match(["STORE", /\A\["key:\d+"\]\z/])
    expect(path).to have_attributes(root: be_root, target: session, length: path.to_a.size)
    expect(path.inspect).to eq("#<Memprof::Heap::Path #{path}>")
    expect(session.dominator).to eq(path[-2])
    expect(session.retains.sum(:size)).to eq(session.retained)
    expect(session.retains.first).to eq(session)
    expect(session.retains.group_by_class.transform_values(&:size))
      .to eq("String" => 4, "Array" => 1, "Session" => 1)
  end

  it "has no path if it is garbage" do
    garbage = heap.where("not reachable").first
    skip "no garbage" if garbage.nil?
    expect([garbage.path, garbage.reachable?, garbage.retains.to_a]).to eq([nil, false, [garbage]])
  end

  it "returns all that it knows" do
    expect(session.data).to include(class: "Session", type: "OBJECT", memsize: session.memsize, line: 12)
    expect([session[:class], session["memsize"], session[:nothing]]).to eq(["Session", session.memsize, nil])
    expect(PP.pp(session, +"")).to include("class=\"Session\"").and include("retained=#{session.retained}")
    expect(PP.pp([session], +"")).to eq("[#{session.inspect}]\n")
  end

  it "is a root, too" do
    root = heap.roots.find { |candidate| candidate.name == "vm" }
    expect(root).to have_attributes(root?: true, type: :root, address: "vm", type_str: "ROOT", klass: nil,
      file: nil, value: nil, length: nil, flags: [], slot_size: nil, path: be_a(Memprof::Heap::Path))
    expect(root.references.size).to be > 1
    expect(root.inspect).to eq("#<ROOT vm>")
    expect(root.data).to include(type: "ROOT")
  end

  it "is equal where it is the same" do
    again = heap.at(session.address)
    expect([again == session, again.eql?(session), again.hash == session.hash]).to eq([true, true, true])
    expect([session, again].uniq.size).to eq(1)
    expect(session == guest).to be(false)
    expect(session == 3).to be(false)
    expect(Shop.heaps.last.at(guest.address)).to eq(guest)
  end

  it "wants a class for instances" do
    expect { session.instances }.to raise_error(ArgumentError, /is not a class\z/)
  end
end
