# frozen_string_literal: true

require "spec_helper"
require "memprof"
require "tmpdir"

RSpec.describe Memprof::Memory do
  before { skip "/proc is needed" unless File.readable?("/proc/self/smaps") }

  let(:memory) { Memprof.memory }

  it "divides the RSS into items that add up to it" do
    expect(memory.items.sum(&:bytes)).to eq(memory.rss)
    expect(memory.items.map(&:key)).to include(:slots_used, :objects, :iseqs, :files, :stacks)
    expect(memory.items.map(&:accuracy).uniq).to contain_exactly(:exact, :estimate, :difference)
    status = File.read("/proc/self/status")[/VmRSS:\s*(\d+)/, 1].to_i * 1024
    expect(memory.rss).to be_within(status / 10).of(status)
    expect(memory.private_bytes).to be_between(1, memory.rss)
    expect(memory.pss).to be_between(memory.private_bytes, memory.rss)
  end

  it "counts objects as Ruby does" do
    require "objspace"
    slots = ObjectSpace.count_objects_size[:TOTAL] # memsizes of what is no internal object
    ours = memory[:slots_used] + memory[:objects] + memory[:iseqs]
    expect(ours).to be > slots * 0.8
    live = GC.stat(:heap_live_slots) * GC::INTERNAL_CONSTANTS.fetch(:RVALUE_SIZE, 40)
    expect(memory[:slots_used]).to be > live * 0.8
    expect(memory[:iseqs]).to be_within(memory[:iseqs] / 4).of(Memprof.iseqs.memsize)
  end

  it "tells strings, blocks of malloc and free memory of malloc apart", :malloc do
    skip "glibc's malloc is needed" unless memory.allocator == "glibc"
    skip "fiddle is not installed" unless fiddle?

    before = memory
    text = "x" * 8_000_000
    held = Memprof.memory
    expect(held[:objects] - before[:objects]).to be_within(1_000_000).of(8_000_000)

    # Less than malloc maps, so that it comes from an arena.
    blocks = Array.new(160) { Fiddle.malloc(50_000) }
    blocks.each { |block| Fiddle::Pointer.new(block)[0, 50_000] = "y" * 50_000 }
    leaked = Memprof.memory
    expect(leaked[:malloc] - held[:malloc]).to be_within(1_500_000).of(8_000_000)
    # The last stays, so that the heap can't shrink.
    blocks[0..-2].each { |block| Fiddle.free(block) }
    expect(Memprof.memory.arenas.sum { |arena| arena[:free] }).to be > 5_000_000
    expect(text.size).to eq(8_000_000)
    Fiddle.free(blocks.last)
  end

  it "tells less of another process" do
    pid = Process.spawn("sleep", "60")
    found = Memprof.memory(pid)
    expect(found.items.sum(&:bytes)).to eq(found.rss)
    expect(found.items.map(&:key)).not_to include(:slots_used)
    expect(found[:files]).to be_positive
    expect(found.allocator).to be_nil
  ensure
    Process.kill(:KILL, pid)
    Process.wait(pid)
    expect { Memprof.memory(pid) }.to raise_error(Memprof::Error, /of process #{pid}: No such file/)
  end

  it "prints itself" do
    text = memory.to_s
    expect(text).to match(/\ARSS: [\d.]+ MiB, [\d.]+ MiB of it private\n\n +Size  Share  What +Accuracy\n/)
    expect(text).to include("Ruby objects, in slots", "Counting a page that n processes share as 1/n: ")
    expect(JSON.parse(memory.to_json)).to include("format" => "memprof-memory", "rss" => memory.rss)
    expect(memory.inspect).to eq("#<Memprof::Memory #{memory.rss} bytes resident>")
  end

  it "is stored in dumps, and compared", :aggregate_failures do
    Dir.mktmpdir do |directory|
      paths = %w[1 2].map { |name| "#{directory}/#{name}.memprof" }
      Memprof.dump_all(paths[0])
      stored = Memprof::Heap.open(paths[0]).memory
      expect(stored.items.sum(&:bytes)).to eq(stored.rss)
      expect(stored[:slots_used]).to be_within(memory[:slots_used] / 4).of(memory[:slots_used])
      expect(stored[:iseqs]).to be_within(memory[:iseqs] / 4).of(memory[:iseqs])

      text = "x" * 20_000_000
      Memprof.dump_all(paths[1], format: :binary)
      growth = Memprof::Heap.open(paths[0]).diff(Memprof::Heap.open(paths[1])).memory
      expect(growth[:objects]).to be_within(3_000_000).of(text.size)
      expect(growth[:after] - growth[:before]).to eq(growth[:change])

      # The child's pages are those of its parent.
      now = Memprof.memory.rss
      Memprof.dump_all("#{directory}/forked.json", fork: true)
      forked = Memprof::Heap.open("#{directory}/forked.json").memory
      expect(forked.rss).to be_within(now / 4).of(now)
      expect([forked.items.sum(&:bytes), forked.pss, forked.private_bytes]).to eq([forked.rss, nil, nil])
      expect(forked.to_s).to match(/\ARSS: [\d.]+ MiB\n/)

      Memprof.dump_all("#{directory}/objspace.json", format: :objspace)
      expect(Memprof::Heap.open("#{directory}/objspace.json").memory).to be_nil
    end
  end

  def fiddle?
    require "fiddle"
    true
  rescue LoadError
    false
  end
end
