# frozen_string_literal: true

require_relative "../heap/shop"

# The names of sheap, on a heap of memprof.
RSpec.describe Memprof::Compat::Sheap do
  let(:heap) { Shop.heap }
  let(:sessions) { heap.where("class = Session") }

  it "selects by type and class" do
    expect(heap.hashes.map(&:type).uniq).to eq([:hash])
    expect(heap.class_named("Session").map(&:type)).to eq([:class])
    expect(heap.class_named("Cache").map(&:type)).to eq([:module])
    expect(heap.class_named('a " quote').size).to eq(0)
    expect(heap.instances_of("Session").to_a).to eq(sessions.to_a)
    klass = heap.class_named("Session").first
    expect(heap.instances_of(klass).to_a).to eq(sessions.to_a).and eq(klass.instances.to_a)
    expect(heap.strings.instances_of(klass).size).to eq(0)
    expect(heap.of_type("T_ARRAY").to_a).to eq(heap.arrays.to_a)
    expect(heap.of_type(:root).to_a).to eq(heap.roots.to_a)
    expect { heap.of_type("a or b") }.to raise_error(ArgumentError)
    expect(heap.iseqs.map(&:class_name).uniq).to eq(["<iseq>"])
    expect(heap.callcaches.size).to eq(heap.of_imemo_type("CALLCACHE").size)
    expect(heap.threads.size).to be >= 1
    verbs = %i[structs plain_objects modules iclasses datas files regexps matches bignums symbols floats
      rationals complexes constcaches callinfos crefs ments procs classes imemos]
    expect(verbs.map { |verb| heap.public_send(verb) }).to all(be_a(Memprof::Heap::Objects))
  end

  it "finds paths and referrers" do
    session = heap.where("class = Session").first
    store = session.referrers.first
    expect(heap.find_path(session).last).to eq(session)
    expect(heap.find_path(store, session)).to eq([store, session])
    expect(heap.find_path(session, store)).to be_nil
    expect(heap.path_to(session.address).to_s).to match(/\ACache::STORE -> Hash\["key:\d+"\] -> Session\z/)
    expect(heap.inverse_references[session.address]).to eq([store])
    expect(heap.objects_by_addr[session.address]).to eq(session)
  end
end
