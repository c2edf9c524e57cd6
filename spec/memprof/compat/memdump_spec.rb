# frozen_string_literal: true

require "stringio"
require "tmpdir"
require_relative "../heap/shop"

RSpec.describe Memprof::Heap::Subset do
  let(:heap) { Shop.heap }
  let(:set) { heap.subset }
  let(:sessions) { set.objects_of_class("Session") }

  it "names the file that it cannot write, as an export does" do
    skip "no /dev/full here" unless File.exist?("/dev/full")
    heap = Memprof::Heap.open(Shop.dumps.first, index: false)
    full = "cannot write /dev/full: No space left on device"
    expect { heap.subset.to_gml("/dev/full") }.to raise_error(Memprof::Error, full)
    expect { heap.subset.save("/dev/full", format: :memprof) }.to raise_error(Memprof::Error, full)
    expect { heap.export("/dev/full", format: :gml) }.to raise_error(Memprof::Error, full)
  end

  it "has members" do
    expect(set.size).to eq(heap.size + heap.roots.size)
    expect(sessions.map(&:class_name).tally).to eq("Session" => 100)
    expect(sessions).to include(heap.where("class = Session").first)
    expect(sessions.include?("0x8")).to be(false)
    expect(sessions.find_by_address(sessions.addresses.first)).to eq(sessions.first)
    expect(sessions.find_by_address(heap.strings.first.address)).to be_nil
    expect(heap.where("class = Session").subset.to_a).to eq(sessions.to_a)
    expect(sessions.inspect).to eq("#<Memprof::Heap::Subset (100 objects)>")
  end

  it "chooses by name, pattern, filter and block" do
    expect(set.objects_of_class(/^Ses+ion$/).size).to eq(100)
    expect(set.objects_of_class(/SESSION/i).size).to be >= 100
    expect(set.objects_of_class(/SESSION/).size).to eq(0)
    expect(set.objects_of_type("HASH").map(&:type).uniq).to eq([:hash])
    expect(set.find_all("class = Session").size).to eq(100)
    expect(sessions.find_all { |object| object.reference("@user").value == "user:7" }.size).to eq(1)
    expect(sessions.sample(0.5, seed: 1).to_a).to eq(sessions.sample(0.5, seed: 1).to_a)
    expect([sessions.sample(0).size, sessions.sample(1).size]).to eq([0, 100])
    expect { set.find_all("clas = A") }.to raise_error(ArgumentError, /did you mean class/)
  end

  it "counts parents, as memdump does" do
    store = sessions.first.referrers.first
    parents, counts = set.parents_of(sessions, min: 5)
    expect(parents.to_a).to eq([store])
    expect(counts).to eq(store => 100)
    expect(set.parents_of(sessions, min: 100).first).to be_empty
  end

  it "finds roots, paths and surroundings" do
    session = sessions.first
    roots = set.roots_of([session])
    # The shortest may begin on the machine's stack, which a path in words does only where there is no other.
    expect(roots.size).to be_between(2, session.path.size)
    expect([roots.count(&:root?), roots.include?(session)]).to eq([1, true])
    expect(set.root_of(session)).to include(session.path[-2])
    expect(set.subgraph_of(session, max_depth: 1).size).to eq(3)
    expect(set.subgraph_of(session, max_depth: Float::INFINITY).size).to eq(6)
    expect(set.depth_first_visit(session).first).to eq(session)
    expect(set.depth_first_visit(session).size).to eq(6)
    expect(set.find_path(session.referrers.first, session).size).to eq(2)
    expect(set.nearest_common_dominator(sessions)).to eq(session.referrers.first)
    expect(set.minimum_spanning_tree([session]).size).to eq(6)
    expect { set.minimum_spanning_tree(sessions) }.to raise_error(ArgumentError)
    expect(set.common_ancestors(sessions)).to include(session.referrers.first)
  end

  it "takes apart" do
    store = sessions.first.referrers.first
    expect(set.without(sessions).size).to eq(set.size - 100)
    expect(set.remove_node(store).objects.where("class = Session").size).to eq(0)
    collapsed = set.collapse(sessions)
    expect(collapsed.references_of(store).where("class = Array").size).to eq(100)
    border, inside = set.interface_with(sessions)
    expect(border.to_a).to eq([store])
    expect(inside.map { |member| inside.annotation(:keepalive_count, member) }.uniq).to eq([6])
    expect(set.remove_small_components(max_size: 1).size).to be <= set.size
    expect(set.common_cleanup.objects_of_type("HASH").size).to eq(0)
    expect(set.roots.size).to be > 0
    valid, missing = sessions.remove_invalid_references
    expect([valid.size, missing.size]).to eq([100, 200])
    expect(missing).to all(match(/\A0x\h+\z/))
    expect(set.add_children(sessions).size).to eq(300)
    expect(set.group("all sessions", sessions).size).to eq(set.size - 99)
    nobody = set.objects_of_class("Nothing")
    expect { set.group("none", nobody) }.to raise_error(ArgumentError, /at least one member/)
  end

  it "joins, and refuses what is of another heap" do
    strings = set.objects_of_class("String")
    expect([(sessions | strings).size, (sessions & strings).size, ((sessions | strings) - strings).size])
      .to eq([100 + strings.size, 0, 100])
    other = Shop.heaps.last.subset
    expect { sessions | other }.to raise_error(ArgumentError, "these are objects of two heaps")
    expect { sessions | 3 }.to raise_error(ArgumentError, "other must be a Subset or Objects, not 3")
    expect(set.diff(Shop.heaps[1].subset).objects_of_class("Session").size).to eq(50)
  end

  it "has statistics" do
    unknown, counts = set.stats
    expect(counts).to include("Session" => 100, "ROOT" => heap.roots.size)
    expect(unknown + counts.values.sum).to eq(set.size)
    expect(set.out_degree(min: 100).values).to all(be >= 100)
    expect(set.replace_class).to equal(set)
    expect(set.with_class_references.references_of(sessions.first).map(&:type)).to include(:class)
  end

  it "returns addresses at which the dump has nothing, also from its index" do
    Dir.mktmpdir do |directory|
      path = File.join(directory, "heap.json")
      File.write(path, <<~JSON)
        {"type":"ROOT", "root":"vm", "references":["0x1000", "0x5000"]}
        {"address":"0x1000", "type":"ARRAY", "length":2, "references":["0x1028", "0xdead0"]}
        {"address":"0x1028", "type":"ARRAY", "length":1, "references":["0xbeef8", "0xdead0"]}
      JSON
      2.times do
        whole = Memprof::Heap.open(path).subset
        valid, missing = whole.remove_invalid_references
        expect([valid.size, missing]).to eq([3, %w[0x5000 0xbeef8 0xdead0]])
        expect(valid.remove_invalid_references.last).to eq([])
        expect(whole.find_all("address = 0x1000").remove_invalid_references.last).to eq(%w[0x1028 0xdead0])
      end
      expect(File.exist?("#{path}.memprof-index")).to be(true)
    end
  end

  it "writes GML, and dumps that can be opened again" do
    Dir.mktmpdir do |directory|
      around = set.roots_of(sessions)
      out = StringIO.new
      around.to_gml(out)
      expect(out.string).to start_with("graph").and include("node [").or include("node\n")
      { "a.json" => "memprof", "a.json.gz" => "memprof", "a.memprof" => "binary" }.each do |name, format|
        path = File.join(directory, name)
        around.save(path)
        again = Memprof::Heap.open(path, index: false)
        expect([again.source[:format], again.where("class = Session").size]).to eq([format, 100])
        expect(again.size + again.roots.size).to eq(around.size)
      end
    end
  end
end
