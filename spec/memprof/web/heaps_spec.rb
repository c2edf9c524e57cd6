# frozen_string_literal: true

require "memprof/web"
require "rack"
require "tempfile"

RSpec.describe Memprof::Web::Heaps do
  include HeapDumps

  let(:heaps) { described_class.new }

  it "opens a dump when it is asked for" do
    entry = heaps.add(cache_dump)
    expect(entry.state).to eq(:idle)
    expect(entry.heap(patience: 30).size).to be > 1000
    expect(entry.state).to eq(:open)
  end

  it "says that it is being opened, and has it later" do
    entry = heaps.add(cache_dump, index: false)
    expect { entry.heap(patience: 0) }.to raise_error(Memprof::Web::Opening, /cache-1.memprof is opening/)
    expect(entry.heap(patience: 30)).to be_a(Memprof::Heap)
  end

  it "reports why a file is no dump, again and again" do
    Tempfile.create do |file|
      file.write("no dump at all")
      file.flush
      entry = heaps.add(file.path)
      2.times do
        expect { entry.heap(patience: 30) }.to raise_error(Memprof::InvalidDump, /not a heap dump; line 1/)
      end
    end
    expect { heaps.add("/nowhere.memprof").heap(patience: 30) }.to raise_error(Memprof::Error, /nowhere/)
  end

  it "has heaps by number, until they are forgotten" do
    first = heaps.add(cache_dump)
    second = heaps.add(cache_dump, name: "second")
    expect([heaps.fetch("1"), heaps.fetch(2)]).to eq([first, second])
    heaps.forget("1")
    expect(heaps.to_a).to eq([second])
    ["1", "3", "x", ""].each do |id|
      expect { heaps.fetch(id) }.to raise_error(Memprof::Web::NotFound), id
      expect { heaps.close(id) }.to raise_error(Memprof::Web::NotFound), id
      expect { heaps.forget(id) }.to raise_error(Memprof::Web::NotFound), id
    end
    expect { first.heap }.to raise_error(Memprof::Web::NotFound, /is closed/)
  end

  it "keeps what is closed in the list, and opens it again" do
    entry = heaps.add(cache_dump)
    size = entry.heap(patience: 30).size
    compared = heaps.comparison([entry, entry])
    heaps.close(1)
    expect([heaps.to_a, entry.state, entry.size, entry.takes_memory?]).to eq([[entry], :idle, size, false])
    expect(entry.heap(patience: 30).size).to eq(size)
    expect(heaps.comparison([entry, entry])).not_to equal(compared)
  end

  it "closes what is being opened, and what could not be" do
    entry = heaps.add("/nowhere.memprof")
    expect { entry.heap(patience: 30) }.to raise_error(Memprof::Error, /nowhere/)
    heaps.close(1)
    expect([entry.state, entry.error]).to eq([:idle, nil])
    opening = Queue.new
    allow(Memprof::Heap).to receive(:open) do
      opening << true
      sleep
    end
    called = false
    entry.prepare { called = true }
    opening.pop
    expect { entry.heap(patience: 0) }.to raise_error(Memprof::Web::Opening)
    waiting = Thread.new { entry.heap(patience: 30) }
    waiting.report_on_exception = false
    eventually("it waits") { waiting.stop? }
    heaps.close(1)
    expect { waiting.value }.to raise_error(Memprof::Web::Opening)
    eventually("its thread has ended") { !entry.takes_memory? }
    expect([entry.state, called]).to eq([:idle, false])
  end

  it "is not opened by a thread that was to open it before" do
    entry = heaps.add(cache_dump)
    slow = Queue.new
    go = Queue.new
    allow(Memprof::Heap).to(receive(:open).and_wrap_original do |open, *path|
      Thread.handle_interrupt(Object => :never) { slow << true and go.pop } # as deep in Rust
      open.call(*path)
    end)
    entry.prepare
    slow.pop
    heaps.close(1)
    go << true
    eventually("its thread has ended") { !entry.takes_memory? }
    expect(entry.state).to eq(:idle)
    go << true
    expect(entry.heap(patience: 30)).to be_a(Memprof::Heap)
  end

  it "works an answer out once for all who wait for it" do
    entry = heaps.add(cache_dump)
    entry.heap(patience: 30)
    allow(Memprof::Heap).to(receive(:answer).and_wrap_original do |ask, *words|
      sleep(0.05)
      ask.call(*words)
    end)
    answers = Array.new(4) { Thread.new { entry.answer(:slots, {}) } }.map(&:value)
    expect(answers.uniq.size).to eq(1)
    expect { entry.answer(:slots, { nearly_empty: "x" }) }.to raise_error(ArgumentError)
    expect(Memprof::Heap).to have_received(:answer).twice
  end

  it "keeps the last answers, not all" do
    entry = heaps.add(cache_dump)
    entry.heap(patience: 30)
    allow(Memprof::Heap).to receive(:answer).and_return({})
    (0..50).each { |number| entry.answer(:top, { limit: number }) }
    entry.answer(:top, { limit: 50 })
    expect(Memprof::Heap).to have_received(:answer).exactly(51).times
    entry.answer(:top, { limit: 0 })
    expect(Memprof::Heap).to have_received(:answer).exactly(52).times
  end

  describe "the number that is open at once" do
    include WebBrowser

    let(:heaps) { described_class.new(max_open: 3) }
    let(:app) { Memprof::Web.new(heaps: heaps, gate: WebBrowser::Open.new) }
    let!(:entries) { Array.new(5) { heaps.add(cache_dump) } }

    before { stub_const("Memprof::Web::Heaps::Entry::PATIENCE", 60) } # comparisons open what they need

    def visit(*ids)
      ids.each do |id|
        heaps.using(heaps.fetch(id)) { heaps.fetch(id).heap(patience: 30) }
        expect(ask(app, "/heaps/#{id}/slots.json").status).to eq(200)
      end
      entries.select { |entry| entry.state == :open }.map(&:id)
    end

    it "is enforced by closing the least recently used heap" do
      expect(visit(1, 2, 3)).to eq([1, 2, 3])
      expect(visit(1, 4)).to eq([1, 3, 4])
      expect(visit(5, 2)).to eq([2, 4, 5])
    end

    it "still lists what was closed, and opens it again" do
      visit(1, 2, 3, 4)
      row = ask(app, "/heaps.json").json[:heaps].first
      expect(row).to include(state: "idle", objects: entries[1].size)
      expect(visit(1)).to eq([1, 3, 4])
    end

    it "closes nothing that a request uses" do
      visit(1)
      heaps.using(*entries) do
        entries.each { |entry| entry.heap(patience: 30) }
        expect(entries.map(&:unload_unused)).to eq([false] * 5)
      end
      expect(heaps.count { |entry| entry.state == :open }).to eq(3)
    end

    it "is given back by comparisons, too" do
      visit(1, 2)
      compared = heaps.comparison(entries.first(2))
      visit(3, 4, 5)
      expect(heaps.comparison(entries.first(2))).not_to equal(compared)
    end

    it "is enough for a comparison" do
      [2, nil, "9"].each do |number|
        expect { heaps.max_open = number }.to raise_error(ArgumentError, /of at least 3/)
      end
      expect(described_class.new.max_open).to eq(8)
    end
  end

  it "stops opening what is closed" do
    entry = heaps.add(cache_dump, index: false)
    entry.prepare
    heaps.close_all
    expect { entry.heap(patience: 5) }.to raise_error(Memprof::Web::NotFound)
    expect(heaps.to_a).to be_empty
  end
end
