# frozen_string_literal: true

require "json"

RSpec.describe Memprof::Core do
  before { skip "processes are copied on Linux" unless RUBY_PLATFORM.include?("linux") }

  # Each in a process of its own, as it is copied.
  def in_child(code)
    result = run_ruby(%(require "memprof"; require "json"; $stdout.sync = true\n#{code}))
    expect([result.stderr, result.status.exitstatus]).to eq(["", 0])
    JSON.parse(result.stdout)
  end

  it "has the objects that ObjectSpace counts" do
    counts = in_child(<<~RUBY)
      Memprof::Core.of { } # loads what it needs
      GC.start
      counted = ObjectSpace.count_objects
      Memprof::Core.of do |core|
        objects = core.objects
        types = objects[:rows].to_h { |row| [:"T_\#{row[:type]}", row[:count]] }
        slots = types.values.sum + objects[:empty][:count]
        puts JSON.generate(types: types, slots: slots, counted: counted)
      end
    RUBY
    counted = counts["counted"]
    expect(counts["slots"]).to eq(counted["TOTAL"])
    off = counted.except("TOTAL", "FREE").reject do |type, count|
      (counts["types"].fetch(type, 0) - count).abs <= 100
    end
    expect(off).to eq({})
  end

  it "knows which objects blocks belong to, and what anchors them" do
    found = in_child(<<~RUBY)
      KEPT = Array.new(200) { |index| "k" * (20_000 + index) }
      def garbage = 50.times { |index| "g" * (40_000 + index) }
      GC.start
      GC.disable
      garbage
      Memprof::Core.of do |core|
        kept = core.each(:owned, min_size: 20_000, max_size: 20_300).to_a
        explained = kept.map { |block| core.explain(block[:address]) }
        puts JSON.generate(
          kept: core.count(:anchored, signature: "%RubyString", min_size: 20_000, max_size: 20_300),
          garbage: core.count(:garbage, signature: "%RubyString", min_size: 40_000, max_size: 40_100),
          owners: explained.map { |block| block[:owner][:type] }.uniq, states: explained.map { |block| block[:state] }.uniq,
          ends: explained.map { |block| block[:chain].last[:address] == block[:start] }.uniq,
          labels: explained.map { |block| block[:chain].filter_map { |step| step[:label] }.join },
          anchors: explained.map { |block| block[:anchor][:anchor] }.uniq)
      end
    RUBY
    expect(found["kept"]["count"]).to eq(200)
    # The stack may still have the last ones.
    expect(found["garbage"]["count"]).to be_between(40, 50)
    expect(found.values_at("owners", "states", "ends")).to eq([["STRING"], ["anchored"], [true]])
    expect(found["anchors"]).to all(match(/\A(?:static|stack|external|register)\z/))
    expect(found["labels"].grep(/\[\d+\]\z/).uniq.size).to be > 150
  end

  it "does not take what only the VM's table of equal strings references for alive" do
    found = in_child(<<~RUBY)
      KEPT = Array.new(100) { |index| -("kept \#{index} ".ljust(7000 + index, "x")) }
      OWN = Array.new(100) { |index| -("own \#{index} ".ljust(9000 + index, "x")) }.to_h { |text| [text, text] }
      def fill = 200.times { |index| -("dropped \#{index} ".ljust(5000 + index % 100, "x")) }
      GC.start
      GC.disable
      fill
      Memprof::Core.of do |core|
        counted = ->(set, size) { core.count(set, signature: "%RubyString", min_size: size, max_size: size + 120)[:count] }
        puts JSON.generate(kept: counted.(:anchored, 7000), own: counted.(:anchored, 9000), dropped: counted.(:garbage, 5000))
      end
    RUBY
    expect(found.values_at("kept", "own")).to eq([100, 100])
    # The stack may still have the last ones.
    expect(found["dropped"]).to be_between(170, 200)
  end

  it "takes what young arrays have for alive, but not what remains of others" do
    found = in_child(<<~RUBY)
      def drop = 200.times { |index| "dropped \#{index} ".ljust(5000 + index % 100, "x") }
      # The VM has elements of young arrays in memory of its own, up to Ruby 3.2, where they stay when the arrays are gone.
      def churn = 5000.times { Array.new(10) { "c".dup } }
      churn
      3.times { GC.start }
      GC.disable
      YOUNG = Array.new(40) { |row| Array.new(5) { |column| "young \#{row} \#{column}".ljust(7000, "y") } }
      drop
      Memprof::Core.of do |core|
        counted = ->(set, size) { core.count(set, signature: "%RubyString", min_size: size, max_size: size + 120)[:count] }
        puts JSON.generate(young: counted.(:anchored, 7000), dropped: counted.(:garbage, 5000))
      end
    RUBY
    expect(found["young"]).to eq(200)
    expect(found["dropped"]).to be_between(170, 200)
  end

  it "finds what C code leaked" do
    skip "this Ruby has no fiddle" unless run_ruby('require "fiddle"').success?

    found = in_child(<<~RUBY)
      require "fiddle"
      MASK = 0x5555_5555_5555
      # The address of the first block is in the second one.
      def leak
        300.times do
          inner = Fiddle.malloc(3000)
          Fiddle::Pointer.new(Fiddle.malloc(3100))[0, 8] = [inner].pack("Q")
        end
        KEPT << (Fiddle.malloc(3200) ^ MASK)
      end
      KEPT = []
      leak
      GC.start
      Memprof::Core.of do |core|
        sizes = { min_size: 3000, max_size: 3120 }
        puts JSON.generate(leaked: core.count(:leaked, **sizes), unreferenced: core.count(:unreferenced, **sizes),
          referrers: core.each(:leaked, min_size: 3000, max_size: 3016).first(5).map do |block|
            core.explain(block[:address])[:referrers].map { |step| step[:size] }
          end)
      end
    RUBY
    # Words that a call has left on the stack or in a slot may look like references: a sixth at most.
    expect(found["leaked"]["count"]).to be_between(500, 600)
    expect(found["unreferenced"]["count"]).to be_between(250, 300)
    expect(found["referrers"].flatten).to all(be_between(3100, 3120))
  end

  it "finds the first arena of a heap that is in pieces, where hardly a bin is empty" do
    skip "this Ruby has no fiddle" unless run_ruby('require "fiddle"').success?

    counts = in_child(<<~RUBY)
      require "fiddle"
      Memprof::Core.of { |core| core.overview } # loads what it needs, which would take what is freed
      # Blocks of up to 32 MiB stay in the heap from now on, as they do when a program frees large ones: M_MMAP_THRESHOLD.
      Fiddle::Function.new(Fiddle.dlopen(nil)["mallopt"], [Fiddle::TYPE_INT] * 2, Fiddle::TYPE_INT).call(-3, 32 << 20)
      sizes = (1..62).map { |bin| 16 * bin } + (1..60).map { |bin| 1024 + (64 * bin) }
      sizes += (16..128).map { |step| 512 * step } + (1..40).map { |step| 32_768 * step }
      3.times { Fiddle.free(Fiddle.malloc(2000)) }
      freed = sizes.flat_map do |size|
        Array.new(12) { [Fiddle.malloc(size), Fiddle.malloc(24)].first }
      end
      freed.each { |address| Fiddle.free(address) }
      # Sorts them into their bins.
      Fiddle.free(Fiddle.malloc(4 << 20))
      puts JSON.generate(Memprof::Core.of { |core| core.overview })
    RUBY
    expect(counts["used"]["count"]).to be > 3000
    expect(counts["free"]["count"]).to be > 500
    expect(counts["corruptions"]).to eq([])
  end

  it "says how an extended set came to its blocks, and counts references by signature" do
    skip "this Ruby has no fiddle" unless run_ruby('require "fiddle"').success?

    found = in_child(<<~'RUBY')
      require "fiddle"
      def block(size) = Fiddle.malloc(size).tap { |address| Fiddle::Pointer.new(address)[0, size] = "\0" * size }
      def link(from, offset, to) = Fiddle::Pointer.new(from)[offset, 8] = [to].pack("Q")
      FIRST, LEFT, RIGHT, SHARED = block(3200), block(3300), block(3400), block(3500)
      link(FIRST, 8, LEFT)
      link(FIRST, 16, RIGHT)
      link(FIRST, 24, LEFT)
      [LEFT, RIGHT].each { |from| link(from, 8, SHARED) }
      names = { FIRST => "first", LEFT => "left", RIGHT => "right", SHARED => "shared" }
      Memprof::Core.of do |core|
        name = ->(address) { names[address.hex] }
        step = ->(step) { step && [step[:rule], name.(step[:from]), name.(step[:to])] }
        blocks = core.each(:allocation, of: FIRST, extend: ["->=>far", "far->"], comment_extensions: true).to_a
        shared = ->(limit) { core.count(:allocation, of: SHARED, min_incoming: limit)[:count] }
        first = ->(**limit) { core.count(:allocation, of: FIRST, **limit)[:count] }
        puts JSON.generate(
          blocks: blocks.map { |block| [name.(block[:address]), step.(block[:added]), block[:again].map(&step)] },
          plain: core.each(:allocation, of: FIRST).first.keys,
          outgoing: [FIRST, SHARED].map { |of| core.each(:outgoing, of: of).map { |block| block[:size] } },
          incoming: core.each(:incoming, of: SHARED).filter_map { |block| name.(block[:address]) },
          shared: [{ "-" => 2 }, { "-" => 100 }, { "%RubyHash" => 1 }, { "-" => 2, "%RubyHash" => 1 }, { "" => 2 }, 2].map(&shared),
          first: [first.(min_outgoing: 2), first.(min_outgoing: 3), first.(max_outgoing: { "-" => 1 })])
      end
    RUBY
    expect(found["blocks"]).to eq([
      ["first", nil, []],
      ["left", %w[->=>far first left], []],
      ["shared", %w[far-> left shared], []],
      ["right", %w[->=>far first right], [%w[far-> right shared]]]
    ])
    expect(found["outgoing"]).to match([contain_exactly(3304, 3400), []])
    expect(found["incoming"]).to include("left", "right")
    expect(found["plain"]).to eq(%w[address size kind signature])
    expect(found["shared"]).to eq([1, 0, 0, 0, 1, 1])
    # The second reference to the same block does not count.
    expect(found["first"]).to eq([1, 0, 0])
  end

  it "extends sets along references, by rules" do
    skip "this Ruby has no fiddle" unless run_ruby('require "fiddle"').success?

    found = in_child(<<~'RUBY')
      require "fiddle"
      # Each block of a list has the address of the next one at offset 8, which points to its offset 16; the last one has
      # those of two others, which share a third.
      def block(size) = Fiddle.malloc(size).tap { |address| Fiddle::Pointer.new(address)[0, size] = "\0" * size }
      def link(from, offset, to) = Fiddle::Pointer.new(from)[offset, 8] = [to].pack("Q")
      LIST = Array.new(2000) { block(3200) }
      LIST.each_cons(2) { |from, to| link(from, 8, to + 16) }
      LEFT, RIGHT, SHARED = block(3300), block(3400), block(3500)
      link(LIST.last, 24, LEFT)
      link(LIST.last, 32, RIGHT)
      [LEFT, RIGHT].each { |from| link(from, 0, SHARED) }
      hex = ->(address) { "0x#{address.to_s(16)}" }
      Memprof::Core.of do |core|
        addresses = ->(set, **options) { core.each(set, **options).map { |block| block[:address].hex } }
        from = { of: hex.(LIST.first) }
        last = { of: hex.(LIST.last) }
        index = LIST.each_with_index.to_h.merge(LEFT => "left", RIGHT => "right", SHARED => "shared")
        names = ->(set, **options) { addresses.(set, **options).map { |address| index[address] } }
        # What is reachable, by a walk of one's own.
        reached = names.(:allocation, **from).compact
        outgoing = Hash.new { |all, address| all[address] = addresses.(:outgoing, of: hex.(address)) }
        naive = [LIST[-20]]
        naive.each { |address| naive |= outgoing[address] } until naive.size == (naive |= naive.flat_map { |at| outgoing[at] }).size
        puts JSON.generate(
          all: names.(:allocation, **from, extend: ["->"]), naive: naive.sort,
          same: addresses.(:allocation, of: hex.(LIST[-20]), extend: ["->"]).sort,
          two: names.(:allocation, **from, extend: ["->=>one", "one->=>two"]),
          # Fiddle::Pointer references them, too.
          back: names.(:allocation, of: hex.(SHARED), extend: ["<-=>near", "near<-=>far"]).compact,
          at: names.(:allocation, **last, extend: ["@18->"]), into: names.(:allocation, **from, extend: ["@8->@10"]).size,
          nowhere: names.(:allocation, **from, extend: ["@8->@11"]), signed: names.(:allocation, **from, extend: ["-->-=>x"]),
          leaked: names.(:allocation, **from, extend: ["~>"]).size,
          restricted: names.(:used, min_size: 3300, max_size: 3400, extend: ["->"]).compact,
          total: core.count(:allocation, **from, extend: ["->"]), chain: names.(:chain, **from, offset: 8).size,
          reverse: names.(:reversechain, of: hex.(LIST[3]), offset: 8, target_offset: 16),
          none: names.(:reversechain, of: hex.(LIST[3]), offset: 8, target_offset: 0))
      end
    RUBY
    expect(found["all"]).to eq([*0...2000, "left", "shared", "right"])
    expect(found["same"]).to eq(found["naive"])
    expect(found["two"]).to eq([0, 1, 2])
    # In the order of addresses.
    expect(found["back"]).to eq(["shared", "left", 1999, "right"]).or eq(["shared", "right", 1999, "left"])
    expect(found["at"]).to eq([1999, "left"])
    expect(found.values_at("into", "nowhere", "signed")).to eq([2000, [0], [0, 1]])
    expect(found["leaked"]).to be_between(1, 2003)
    expect(found["restricted"]).to eq(%w[left shared right]).or eq(%w[right shared left])
    expect(found["total"]["count"]).to eq(2003)
    expect(found.values_at("chain", "reverse", "none")).to eq([2000, [3, 2, 1, 0], [3]])
  end

  it "has sets that add up" do
    counts = in_child(<<~RUBY)
      Memprof::Core.of do |core|
        sets = %i[allocations used free threadcached anchored garbage leaked unreferenced owned native anchorpoints
                  staticanchored stackanchored registeranchored externalanchored threadonlyanchored]
        puts JSON.generate(sets.to_h { |set| [set, core.count(set)[:count]] }.merge(
          listed: core.each(:used).count, overview: core.overview))
      end
    RUBY
    overview = counts.delete("overview")
    expect(counts["allocations"]).to eq(counts["used"] + counts["free"])
    expect(counts["used"]).to eq(counts.values_at("anchored", "garbage", "leaked").sum)
    expect(counts["used"]).to eq(counts.values_at("owned", "native", "leaked").sum)
    expect(counts["listed"]).to eq(counts["used"])
    expect(counts["free"]).to be >= counts["threadcached"]
    expect(counts["leaked"]).to be >= counts["unreferenced"]
    expect(counts["anchored"]).to be >= counts["staticanchored"]
    expect(overview).to include("allocator" => "glibc", "corruptions" => [], "skipped" => 0, "missing" => 0)
    blocks = overview.values_at("used", "free").sum { |total| total["bytes"] }
    headers = 8 * counts["allocations"]
    memory = overview.values_at("arenas", "mapped").sum { |total| total["bytes"] } - overview["tops"]
    # Mapped blocks have two words of their own.
    expect(memory - blocks - headers).to be_between(0, overview["mapped"]["count"] * 8192)
  end

  it "copies the process without a trace, with threads, in GC stress and in forks" do
    found = in_child(<<~RUBY)
      Memprof::Core.of { } # loads what it needs
      threads = Array.new(3) { Thread.new { loop { "x" * 10_000 } } }
      child = fork { sleep }
      reaped = []
      waiter = Thread.new { reaped << Process.wait }
      GC.stress = true
      counts = Array.new(3) { Memprof::Core.of { |core| core.count(:used)[:count] } }
      GC.stress = false
      GC.auto_compact = true if GC.respond_to?(:auto_compact=)
      counts << Memprof::Core.of { |core| core.count(:used)[:count] }
      children = File.read("/proc/self/task/\#{$$}/children").split.map(&:to_i)
      Process.kill(:KILL, child)
      waiter.join
      reader, writer = IO.pipe
      other = fork { writer.puts(Memprof::Core.of { |core| core.count(:used)[:count] }) }
      writer.close
      counts << reader.read.to_i
      Process.wait(other)
      puts JSON.generate(counts: counts, children: children == [child], reaped: reaped == [child])
    RUBY
    expect(found["counts"]).to all(be > 1000)
    expect(found.values_at("children", "reaped")).to eq([true, true])
  end

  it "takes another copy if a thread was changing the heap" do
    native = Memprof.const_get(:Native)
    torn, whole = [true, false].map { |damaged| double("image", damaged?: damaged) }
    allow(native).to receive(:drop_snapshot)
    allow(native).to receive(:image_of_snapshot).and_return([0.1, torn], [0.1, torn], [0.1, whole])
    expect(described_class.of { |core| core.instance_variable_get(:@native) }).to eq(whole)
    expect(native).to have_received(:image_of_snapshot).exactly(3).times
    expect(native).to have_received(:drop_snapshot).exactly(3).times
    # A heap that is damaged in every copy is damaged.
    allow(native).to receive(:image_of_snapshot).and_return([0.1, torn])
    expect(described_class.of { |core| core.instance_variable_get(:@native) }).to eq(torn)
  end

  it "says what is wrong" do
    expect { described_class.open("/no/such/file") }
      .to raise_error(Memprof::Error, %r{cannot read /no/such/file: No such})
    expect { described_class.open(__FILE__) }
      .to raise_error(Memprof::Error, /core_spec\.rb: this is not an ELF core file/)
    expect { described_class.open(RbConfig.ruby) }.to raise_error(Memprof::Error, /but no core file/)
    expect { described_class.of(1 << 30) { nil } }.to raise_error(Memprof::Error, /no such process:/)
    described_class.of do |core|
      # Names it, should there be no blocks below.
      expect(core.overview).to include(allocator: "glibc", corruptions: [], skipped: 0)
      expect { core.count(:everything) }
        .to raise_error(ArgumentError, /unknown set "everything"; expected one of: allocations/)
      expect { core.count(:used, least: 1) }.to raise_error(ArgumentError, /least/)
      expect { core.describe("zzz") }.to raise_error(ArgumentError, /"zzz" is not an address/)
      expect { core.count(:incoming) }.to raise_error(ArgumentError, /incoming needs an address/)
      expect { core.count(:used, extend: ["=>"]) }.to raise_error(ArgumentError, %r{invalid /extend "=>"})
      expect { core.words("0x0", 1 << 30) }.to raise_error(ArgumentError, /too many/)
      expect(core.describe("0x0")).to include(place: "unmapped")
      expect(core.words("0x0", 16)).to eq([])
      expect { described_class.of { nil } }.to raise_error(Memprof::Error, /reads another copy/)
      expect(core.count(:used)[:count]).to be > 1000
    end
    ended = described_class.of(&:itself)
    expect { ended.overview }.to raise_error(Memprof::Error, /ended with the block/)
  end
end
