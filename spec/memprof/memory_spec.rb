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
    ours = memory[:slots_used] + memory[:objects] + memory[:iseqs] + memory[:memprof]
    expect(ours).to be > slots * 0.8
    live = GC.stat(:heap_live_slots) * GC::INTERNAL_CONSTANTS.fetch(:RVALUE_SIZE, 40)
    expect(memory[:slots_used]).to be > live * 0.8
    expect(memory[:iseqs]).to be_within(memory[:iseqs] / 4).of(Memprof.iseqs.memsize)
  end

  # In processes of their own, in which nothing else happens.
  def in_child(code)
    result = run_ruby("require 'memprof'; Memprof.memory; GC.start; GC.disable\n#{code}")
    expect([result.stderr, result.status.exitstatus]).to eq(["", 0])
    result.stdout.lines(chomp: true)
  end

  it "has an item for what memprof takes, which is none of the program's, in dumps, too" do
    result = Dir.mktmpdir { |directory| run_ruby(<<~'RUBY', chdir: directory) }
      require "memprof"
      KEPT = []
      code = RubyVM::InstructionSequence.compile("KEPT << Object.new\n" * 20_000)
      Memprof.start
      code.eval
      code = nil
      live = Memprof.memory
      Memprof.dump_all("heap.memprof")
      stored = Memprof::Heap.open("heap.memprof").memory
      puts live[:memprof], stored[:memprof], live[:malloc], stored[:malloc]
    RUBY
    expect(result).to be_success, result.stderr
    live, stored, malloc, stored_malloc = result.stdout.split.map(&:to_i)
    expect(live).to be_between(20_000 * 60, 20_000 * 500)
    expect(stored).to be_between(live * 0.9, live + (4 << 20))
    expect(stored_malloc).to be <= malloc + (1 << 20)
  end

  {
    "tcmalloc" => ["libtcmalloc{,_minimal}.so.*", nil, :anonymous],
    "jemalloc" => ["libjemalloc.so.*", "jemalloc", :objects]
  }.each do |allocator, (pattern, name, key)|
    it "asks the allocator that malloc belongs to, with #{allocator} preloaded" do
      library = Dir["/{usr/,}lib{64,/*,}/#{pattern}"].first or skip "#{allocator} is not installed"
      answer = run_ruby(<<~RUBY, env: { "LD_PRELOAD" => library }).stdout
        require "memprof"
        before = Memprof.memory
        strings = Array.new(50) { "x" * (1 << 20) }
        after = Memprof.memory
        p [after.allocator, after[:#{key}] - before[:#{key}], after[:malloc_free], strings.size]
      RUBY
      expect(answer).to match(/\A\[#{Regexp.escape(name.inspect)}, \d+, \d+, 50\]\n\z/)
      grown, free = answer.scan(/\d+/).map(&:to_i)
      expect(grown).to be_within(5 << 20).of(50 << 20)
      expect(free).to be < 20 << 20
    end
  end

  it "distinguishes strings, blocks of malloc and free memory of malloc" do
    skip "glibc's malloc is needed" unless memory.allocator == "glibc"
    begin
      require "fiddle"
    rescue LoadError
      skip "fiddle is not installed" # no default gem any more since Ruby 4.0
    end

    strings, blocks, free = in_child(<<~'RUBY').map(&:to_i)
      require "fiddle"
      Fiddle.free(Fiddle.malloc(1))
      before = Memprof.memory
      text = "x" * 8_000_000
      held = Memprof.memory
      puts held[:objects] - before[:objects]
      # Less than malloc maps, so that it comes from an arena.
      blocks = Array.new(160) { Fiddle.malloc(50_000) }
      filled = "y" * 50_000
      blocks.each { |block| Fiddle::Pointer.new(block)[0, 50_000] = filled }
      puts Memprof.memory[:malloc] - held[:malloc]
      # The last stays, so that the heap can't shrink.
      blocks[0..-2].each { |block| Fiddle.free(block) }
      puts Memprof.memory.arenas.sum { |arena| arena[:free] }
    RUBY
    expect(strings).to be_within(1_000_000).of(8_000_000)
    expect(blocks).to be_within(1_500_000).of(8_000_000)
    expect(free).to be > 5_000_000
  end

  it "knows less about another process" do
    pid = Process.spawn("sleep", "60")
    # It has been started, but the kernel may still be at it.
    found = eventually("mapped files") do
      Memprof.memory(pid).then { |memory| memory if memory[:files].positive? }
    rescue Memprof::Error
      nil
    end
    expect(found.items.sum(&:bytes)).to eq(found.rss)
    expect(found.items.map(&:key)).not_to include(:slots_used)
    expect(found.allocator).to be_nil
    expect(found.to_s).to match(/^Parts of Ruby and malloc are unknown: .* not loaded memprof\/signal\.$/)
  ensure
    Process.kill(:KILL, pid)
    Process.wait(pid)
    expect { Memprof.memory(pid) }.to raise_error(Memprof::Error, /of process #{pid}: No such file/)
  end

  it "prints itself" do
    text = memory.to_s
    expect(text).to match(/\ARSS [\d.]+ .iB, [\d.]+ .iB of it private\n\n +Size  Share  What +Accuracy\n/)
    expect(text).to include("Ruby objects, in slots", "(shared pages split among processes).")
    expect(JSON.parse(memory.to_json)).to include("format" => "memprof-memory", "rss" => memory.rss)
    expect(memory.inspect).to eq("#<Memprof::Memory #{memory.rss} bytes resident>")
  end

  it "is stored in dumps, and compared" do
    Dir.mktmpdir do |directory|
      lines = in_child(<<~RUBY)
        Dir.chdir(#{directory.dump})
        Memprof.dump_all("1.memprof", format: :binary)
        live = Memprof.memory
        text = "x" * 20_000_000
        Memprof.dump_all("2.json")
        # The child's pages are those of its parent, but for those of files: it has the ones that it touched.
        Memprof.dump_all("forked.json", fork: true)
        Memprof.dump_all("objspace.json", format: :objspace)
        first, second, forked, other =
          %w[1.memprof 2.json forked.json objspace.json].map { |path| Memprof::Heap.open(path) }
        near = ->(one, two) { (one - two).abs < two / 4 }
        stored = first.memory
        p stored.items.sum(&:bytes) == stored.rss, stored.private_bytes.positive?
        p near.call(stored[:slots_used], live[:slots_used]), stored[:iseqs].positive?
        growth = first.diff(second).memory
        p near.call(growth[:objects], text.size), growth[:change] > 15_000_000
        child = forked.memory
        p child.rss.between?(text.size, second.memory.rss * 5 / 4), child.items.sum(&:bytes) == child.rss
        p child.pss, child.private_bytes, child.to_s.start_with?("RSS \#{Memprof::Units.bytes(child.rss)}\\n")
        p other.memory
      RUBY
      expect(lines).to eq(%w[true true true true true true true true nil nil true nil])
    end
  end

  it "finds objects on pages that a worker has unshared" do
    Dir.mktmpdir do |directory|
      lines = in_child(<<~RUBY)
        Dir.chdir(#{directory.dump})
        p Memprof.memory.sharing
        $gaps = Array.new(200_000) { Object.new }
        GC.start
        $gaps.each_index { |index| $gaps[index] = nil if index.even? }
        GC.start
        Process.wait(fork do
          Memprof.start
          before = Memprof.memory
          $cache = Array.new(20_000) { Object.new } # in the gaps
          after = Memprof.memory
          sharing = after.sharing
          p sharing[:parent] == Process.ppid, after.to_s.include?("Ruby's heap, forked from \#{Process.ppid}: ")
          p sharing[:unshared] - before.sharing[:unshared] > 500_000, sharing[:shared] > 1_000_000
          p sharing.values_at(:shared, :unshared, :new).sum <= after[:slots_used] + after[:slots_free]
          Memprof.dump_all("1.json")
          Memprof.dump_all("2.memprof", format: :binary, fork: true)
        end)
        p $?.success?
        %w[1.json 2.memprof].each do |path|
          heap = Memprof::Heap.open(path)
          count = ->(query) { heap.where(query).count }
          # On pages that the parent has, and beside objects that it allocated.
          p count.call("unshared and line = 11 and class = Object") > 15_000
          p count.call("unshared and class = Object and not tracked") > 15_000
          p count.call("not unshared and class = Object") > 1_000
          p count.call("unshared is none"), heap.memory.sharing[:parent] == Process.pid
        end
      RUBY
      expect(lines).to eq(%w[nil true true true true true true] + (%w[true true true 0 true] * 2))
    end
  end
end
