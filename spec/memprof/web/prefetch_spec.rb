# frozen_string_literal: true

require "memprof/web"

RSpec.describe Memprof::Web::Prefetch do
  include HeapDumps

  let(:heaps) { Memprof::Web::Heaps.new }

  before { Memprof::Web::Router.standard }

  def look(entry)
    entry.heap(patience: 120)
    described_class.new(heaps).run(entry)
  end

  # The questions that are put to heaps while the block runs.
  def asked(&)
    questions = []
    listener = TracePoint.new(:call) do |point|
      next unless point.self.instance_of?(Memprof::Heap) && point.method_id == :ask

      questions << point.binding.local_variable_get(:question)
    end
    listener.enable(&)
    questions
  end

  it "has the answers for the overview" do
    entry = heaps.add(cache_dump)
    look(entry)
    expect(asked { Memprof::Web::Pages::Overview.new(heaps, { heap: "1" }).data }).to eq([])
    expect(asked { Memprof::Web::Pages::Tree.new(heaps, { heap: "1" }).data }).to eq([])
  end

  it "has the verdict on several heaps, but not on more than may be open" do
    entries = Array.new(3) { |index| heaps.add(cache_dump(index + 1)) }
    look(entries.first)
    expect(entries.map(&:state)).to eq(%i[open open open])
    added = 0
    adds = TracePoint.new(:call) { |point| added += 1 if point.method_id == :add }
    adds.enable(target: Memprof::Heap::Verdict.instance_method(:add)) { heaps.verdict(entries) }
    expect(added).to eq(0)

    many = Memprof::Web::Heaps.new(max_open: 3)
    4.times { many.add(cache_dump) }
    many.first.heap(patience: 120)
    described_class.new(many).run(many.first)
    expect(many.map(&:state)).to eq(%i[open idle idle idle])
  end

  it "leaves the first heap as it is if the other is none" do
    entry = heaps.add(cache_dump)
    other = heaps.add("/nowhere.memprof")
    done = Queue.new
    entry.prepare do |opened|
      described_class.new(heaps).run(opened)
    ensure
      done << true
    end
    done.pop
    Thread.pass while entry.takes_memory? && entry.instance_variable_get(:@users).positive?
    expect([entry.state, other.state]).to eq(%i[open failed])
    expect(entry.error).to be_nil
  end
end
