# frozen_string_literal: true

require "json"
require "tmpdir"

# Blocks of malloc as objects of a heap: one graph of Ruby and C. What is retained is compared with what
# malloc itself says that freeing it frees.
RSpec.describe "The heap of an image with blocks of malloc" do
  include HeapDumps

  before do
    skip "processes are copied on Linux" unless RUBY_PLATFORM.include?("linux")
    need(client: "fiddle")
  end

  around { |example| Dir.mktmpdir { |directory| Dir.chdir(directory) { example.run } } }

  # `used` is what mallinfo2(3) says is used, of the arenas and mapped; `blocks` yields a heap with blocks.
  prelude = <<~'RUBY'
    require "fiddle"
    require "json"
    require "memprof"
    MALLINFO = Fiddle::Handle::DEFAULT["mallinfo2"]
    def used
      # A struct of ten words, for which the caller makes room.
      info = "\0" * 80
      Fiddle::Function.new(MALLINFO, [Fiddle::TYPE_VOIDP], Fiddle::TYPE_VOIDP).call(info)
      info.unpack("Q10").values_at(4, 7).sum
    end

    def blocks = Memprof::Core.of { |core| yield core.heap(blocks: true), core }
  RUBY

  def facts(code, prelude)
    result = run_ruby("#{prelude}#{code}", timeout: 300)
    expect([result.stderr, result.status.exitstatus]).to eq(["", 0])
    JSON.parse(result.stdout)
  end

  # Asked from outside, so that what asking takes is not in what malloc says. A word that was left at the end
  # of a block may look like the address of a node, which leads to its document: up to 6 of the 500 count as
  # somebody else's, and more as not the Array's alone.
  it "has the sizes that freeing documents of Nokogiri frees" do
    need(client: "nokogiri")
    skip "needs root, or the permission to trace any process" unless Process.euid.zero?

    program = prelude.sub('require "memprof"', "") + <<~'RUBY'
      require "nokogiri"
      make = -> { Nokogiri::XML("<r>#{"<a b='c'>text<d/></a>" * 200}</r>") }
      # Where nothing is left on the machine's stack.
      collect = -> { 3.times { Thread.new { make.call }.join; GC.start } }
      Thread.new { DOCUMENTS = Array.new(500) { make.call } }.join
      used
      collect.call
      puts "ready"
      $stdin.gets
      full = used
      DOCUMENTS.clear
      collect.call
      puts full - used
      $stdin.read
    RUBY
    freed = nil
    dump = ->(pid, name) do
      result = run_memprof("dump", "--pid", pid, "--blocks", "--output", name)
      expect(result.status.exitstatus).to eq(0), result.stderr
      Memprof::Heap.open(name)
    end
    before, after = plain_program(program) do |pid, output, input|
      first = dump.call(pid, "before.memprof")
      input.puts
      freed = output.gets.to_i
      [first, dump.call(pid, "after.memprof")]
    end
    documents = before.where("class = Nokogiri::XML::Document")
    blocks = [before, after].map { |heap| heap.where("type = BLOCK") }
    gone = blocks.map(&:size).reduce(:-)
    expect(documents.size).to be_between(500, 501)
    expect(gone).to be > 500_000
    # What malloc counts includes a header of 8 bytes for each block.
    expected = freed - (8 * gone)
    expect(blocks.map { |found| found.sum(:size) }.reduce(:-)).to be_within(0.005 * expected).of(expected)
    expect(documents.retained).to be_within(0.02 * expected).of(expected)
    # The Array, or its buffer, if a word that was left looks like the address of that.
    expect(before.where("class = Array or type = BLOCK").map(&:retained).max).to be > 0.5 * expected
    arrays = before.where("class = Array and length = 500")
    expect(arrays.map { |array| array.path.to_s }).to include(/DOCUMENTS/)
  end

  it "knows what C code leaked, what Ruby still holds, and which words only look like addresses" do
    found = facts(<<~'RUBY', prelude)
      Thread.new { 100.times { |number| Fiddle.malloc(3001 + number) } }.join
      BUFFERS = Array.new(20) { Fiddle::Pointer.malloc(54_321, Fiddle::RUBY_FREE) }
      $held = [Fiddle::Pointer.malloc(65_432, Fiddle::RUBY_FREE)]
      NUMBERS = Array.new(20) { Fiddle.malloc(7_777) } # addresses as Integers: what Ruby holds, a scan can't know
      GC.start
      found = blocks do |heap, core|
        leaked = heap.where("leaked")
        global = heap.where("type = BLOCK and size >= 65432 and size < 65500 and reachable").first
        buffers = heap.where("type = BLOCK and size >= 54321 and size < 54400 and reachable")
        known = core.each(:leaked).map { |block| heap.at(block[:address].hex).id }
        free = heap.where("type = BLOCK and state != used")
        { free: [free.size, free.sum(:size)] == core.count(:free).values,
          cached: heap.where("state = cached").size == core.count(:threadcached)[:count],
          uncounted: [heap.where("type = BLOCK").size, heap.where("type = BLOCK and state = used").size].uniq,
          used: core.count(:used)[:count],
          leaked: leaked.where("size > 3000 and size < 3200").size,
          held: leaked.where("size > 7776 and size < 7800").size,
          missing: (known - leaked.map(&:id)).size, global: global.path.to_s,
          rss: heap.memory.rss, items: heap.memory.items.sum(&:bytes), objects: heap.memory[:objects],
          buffers: buffers.size, path: buffers.first.path.to_s,
          retained: heap.where("class = Fiddle::Pointer").map(&:retained).max }
      end
      puts JSON.generate(found)
    RUBY
    expect(found).to include("free" => true, "cached" => true, "uncounted" => [found["used"]])
    # A word of a stack may look like the address of one.
    expect(found["leaked"]).to be_between(97, 100)
    expect(found["missing"]).to eq(0)
    expect(found["global"]).to match(/\A\$held.*Fiddle::Pointer.*block/mi)
    expect(found["items"]).to eq(found["rss"])
    # At least the buffers.
    expect(found["objects"]).to be > 20 * 54_321
    expect(found["buffers"]).to eq(20)
    expect(found["path"]).to match(/BUFFERS.*Fiddle::Pointer.*BLOCK|BUFFERS.*Fiddle::Pointer.*block/m)
    expect(found["retained"]).to be >= 54_321
  end

  it "calls the same blocks leaked as the core, and none that an object holds" do
    found = facts(<<~'RUBY', prelude)
      require "objspace"
      require "set"
      Row = Struct.new(*("a".."z").map(&:to_sym))
      class Plain
        def initialize(count) = count.times { |number| instance_variable_set(:"@v#{number}", "v" * number * 9) }
      end
      FACTORS = Array.new(300) { |number| (3**(20_000 + number)) }
      TEXTS = Array.new(300) { |number| "text #{number} " * 300 }
      SHARED = Array.new(300) { |number| "shared #{number} " * 300 }.map { |text| text[10..] }
      GROWN = Array.new(100) { |number| Array.new(500, "e#{number}").tap { |array| array.pop(400) } }
      TABLES = Array.new(100) { |number| Array.new(number).each_index.to_h { |key| ["k#{key}", [key] * 9] } }
      OTHERS = [Set.new(1..900), Rational(7**900, 11**900), Complex(3**900, 5), Time.now, /a#{"b" * 900}/,
        "x".match(/(?<x>x)/), proc { 1 }, method(:puts), [1].each.tap(&:next), Row.new(*1..26),
        Plain.new(3), Plain.new(40), :"symbol #{"s" * 900}", Thread::Queue.new.push(1), ENV.to_h, $stdout,
        String.new("with").tap { |text| text.instance_variable_set(:@text, "y" * 900) },
        Class.new { const_set(:TEXT, "z" * 900); def call = "w" * 9 }, ObjectSpace::WeakMap.new, Mutex.new]
      CAPTURED = Array.new(300) { |number| (text = "captured #{number} " * 9) && proc { text } }
      # In bytes of Strings, addresses are only bytes.
      BYTES = Thread.new { Array.new(100) { [Fiddle.malloc(3000)].pack("Q") * 20 } }.value
      GC.start
      found = blocks do |heap, core|
        known = core.each(:leaked).map { |block| heap.at(block[:address].hex).id }
        leaked = heap.where("leaked").map(&:id)
        holders = [FACTORS, TEXTS].map { |held| heap.at(JSON.parse(ObjectSpace.dump(held))["address"].hex).retained }
        { only: [known - leaked, leaked - known].map(&:size), leaked: leaked.size, holders: holders,
          bytes: heap.where("leaked and size >= 3000 and size < 3100").size,
          # Without blocks, an object references what its blocks do.
          garbage: [heap, core.heap].map { |one| one.where("type != BLOCK and not reachable").size },
          captured: core.heap.where("value ~ 'captured ' and length > 90 and reachable").size }
      end
      puts JSON.generate(found)
    RUBY
    # A word of a stack, or one left in an object's slot, may look like the address of one.
    expect(found).to include("only" => [0, be <= 3], "bytes" => be_between(97, 100))
    expect(found["leaked"]).to be < 110
    expect(found["garbage"].last).to be_within(150).of(found["garbage"].first)
    expect(found["captured"]).to be >= 300
    expect(found["holders"]).to match([be > 300 * 3960, be > 300 * 2500])
  end

  it "tells the collector's mark stack from other blocks of its size" do
    found = facts(<<~'RUBY', prelude)
      # As many words as a piece of the mark stack has.
      POINTERS = Fiddle::Pointer.malloc(4000, Fiddle::RUBY_FREE)
      Thread.new { 500.times { |place| POINTERS[place * 8, 8] = [Fiddle.malloc(1000)].pack("Q") } }.join
      Dead = Struct.new(:text)
      $dead = Array.new(2000) { Dead.new("x" * 1500) }
      GC.start
      # From here on, nothing may free what is dead.
      GC.disable
      $dead = nil
      found = blocks do |heap, core|
        { lost: heap.where("type = BLOCK and not reachable and size = 1000").size,
          leaked: core.count(:leaked, min_size: 1000, max_size: 1000)[:count],
          unreachable: heap.where("class = Dead and not reachable").size }
      end
      puts JSON.generate(found)
    RUBY
    expect(found.slice("lost", "leaked")).to eq("lost" => 0, "leaked" => 0)
    expect(found["unreachable"]).to be > 1_700
  end

  it "has no roots on the stack of a thread that has ended" do
    skip "only x86-64 says which stacks these are" unless RUBY_PLATFORM.start_with?("x86_64")
    # `struct rb_jit_cont` of cont.c: until a dead Thread is collected.
    skip "a list for the JIT leads to the stacks of all fibers" if RUBY_VERSION >= "3.2"
    skip "needs root, or the permission to trace any process" unless Process.euid.zero?

    program = <<~'RUBY'
      # Nothing may free what is dead.
      GC.start
      GC.disable
      Dead = Struct.new(:text)
      def deep(level, dead) = level.zero? ? dead.size : deep(level - 1, dead) + 0
      Thread.new { deep(50, Array.new(2000) { Dead.new("x" * 1500) }) }.join
      # Ruby waits some seconds for more work before the native thread ends.
      sleep 0.1 until Dir.children("/proc/self/task").size <= 2
      puts "ready"
      $stdin.read
    RUBY
    plain_program(program) do |pid|
      garbage = JSON.parse(run_memprof("core", "--json", pid, "count", "garbage").stdout)
      expect(garbage["count"]).to be > 1_900
    end
  end

  it "is what a dump and a command have with --blocks" do
    program = <<~RUBY
      require "fiddle"
      BUFFERS = Array.new(200) { Fiddle::Pointer.malloc(54_321, Fiddle::RUBY_FREE) }
      puts :ready
      $stdin.read
    RUBY
    skip "needs gcore" unless system("which", "gcore", out: File::NULL)
    plain_program(program) do |pid|
      expect(system("gcore", "-o", "core", pid.to_s, out: File::NULL, err: File::NULL)).to be(true)
    end
    core = Dir["core.*"].first
    top = run_memprof("top", "--blocks", "--limit", "3", core)
    expect([top.stderr[/^memprof:.*/], top.status.exitstatus]).to eq([nil, 0])
    # A word that was left somewhere may lead to one of the buffers, which then is not the Array's alone.
    expect(top.stdout).to match(/(?:9\.[5-9]|10\.\d) MiB.*Array/)
    expect(top.stdout + top.stderr).to include("memprof show --blocks #{core} 0x")
    rows = run_memprof("histogram", "--blocks", "--by", "type", "--json", core).stdout
    block = JSON.parse(rows)["rows"].find { |row| row["key"] == "block" }
    expect(block["size"]).to be > 200 * 54_321
    expect(run_memprof("convert", "--blocks", core, "with.memprof").status.exitstatus).to eq(0)
    again = run_memprof("histogram", "--by", "type", "--json", "with.memprof").stdout
    expect(JSON.parse(again)["rows"]).to eq(JSON.parse(rows)["rows"])
    verbs = [%w[stats], %w[leaks], %w[tree], %w[dups], %w[slots], ["path", "--where", "size > 50000"]]
    taken = verbs.to_h { |words| [words.first, run_memprof(*words, "--blocks", core).status.exitstatus] }
    expect(taken.values).to all(eq(0)), taken.inspect
  end

  it "says so where only one of two heaps has them" do
    found = facts(<<~'RUBY', prelude)
      blocks do |heap, core|
        plain = core.heap
        puts JSON.generate(
          warnings: [plain.diff(heap), heap.diff(heap)].map(&:warnings),
          remarks: [[plain, heap], [heap, heap]].map do |heaps|
            heaps.inject(Memprof::Heap::Verdict.new) { |verdict, one| verdict.add(one) }.answer[:remarks]
          end)
      end
    RUBY
    differ = include(start_with("Only some of the dumps have the blocks of malloc"))
    expect(found["warnings"].first).to differ
    expect(found["remarks"].first).to differ
    expect(found.values.map(&:last)).to all(satisfy { |texts| texts.grep(/blocks/).empty? })
  end

  it "shows in dumps what C code loses more and more of" do
    skip "needs root, or the permission to trace any process" unless Process.euid.zero?

    program = <<~'RUBY'
      require "fiddle"
      lose = -> { 300.times { Fiddle.malloc(5000) } }
      lose.call
      puts "ready"
      while $stdin.gets
        lose.call
        puts "done"
      end
    RUBY
    dumps = plain_program(program) do |pid, output, input|
      %w[1.memprof 2.memprof 3.memprof].each do |name|
        expect(run_memprof("dump", "--pid", pid, "--blocks", "-o", name).status.exitstatus).to eq(0)
        input.puts
        output.gets
      end
    end
    leaks = run_memprof("leaks", "--fail", *dumps)
    text = leaks.stdout.gsub(/\s+/, " ")
    expect(text).to start_with("No Ruby object grows, native memory does")
    expect(text).to match(/Blocks of malloc that nothing references: 1\.[34] MiB, 2\.[789] MiB, 4\.\d MiB\./)
    expect(text).to match(/Nothing references \d{3} blocks of malloc \(4\.\d MiB, \d+ of them of 4\.9 KiB\)/)
    expect(leaks.status.exitstatus).to eq(1)
    one = run_memprof(dumps.first).stdout.gsub(/\s+/, " ")
    expect(one).to include("`memprof query 1.memprof leaked` shows them.")
  end

  it "has the classes of C++" do
    skip "needs a C++ compiler" unless system("which", "c++", out: File::NULL)
    File.write("classes.cc", <<~CXX)
      #include <memory>
      #include <cstdio>
      namespace shop { template <class T> struct Cart { virtual ~Cart() {} T items[20]; }; }
      struct Order { virtual ~Order() {} char text[100]; };
      static void *kept[300];
      static std::shared_ptr<Order> shared[50];
      extern "C" void make() {
        for (int i = 0; i < 100; i++) kept[i] = new shop::Cart<long>;
        for (int i = 100; i < 300; i++) kept[i] = new Order;
        for (auto &one : shared) one = std::make_shared<Order>();
      }
    CXX
    expect(system("c++", "-shared", "-fPIC", "-o", "classes.so", "classes.cc")).to be(true)
    found = facts(<<~'RUBY', prelude)
      Fiddle::Function.new(Fiddle.dlopen("./classes.so")["make"], [], Fiddle::TYPE_VOID).call
      rows = blocks do |heap, core|
        rows = heap.histogram(by: :class, where: "type = BLOCK", limit: 1000)[:rows]
        [rows.to_h { |row| [row[:key][/\A<(.*)>\z/, 1], row[:count]] },
         core.summarize(:used)[:rows].to_h { |row| [row[:class], row[:count]] }]
      end
      puts JSON.generate(rows)
    RUBY
    shared = found[1].keys.compact.find { |name| name.start_with?("std::_Sp_counted_ptr_inplace<Order") }
    expect(found).to all(include("shop::Cart<long>" => 100, "Order" => 200, shared => 50))
  end

  # Numbers of elements that look like numbers of a header, headers in blocks, and lists of C that have none.
  it "has the containers of C++" do
    skip "needs a C++ compiler" unless system("which", "c++", out: File::NULL)
    File.write("containers.cc", <<~CXX)
      #include <deque>
      #include <list>
      #include <map>
      #include <set>
      #include <string>
      #include <unordered_map>
      #include <unordered_set>
      #include <vector>
      #include <cstdlib>
      static std::string strings[200];
      static std::vector<int> vectors[50];
      static std::list<long> list, *list_in_block;
      static std::map<int, long> map;
      static std::set<std::string> *set_in_block;
      static std::unordered_map<int, long> table;
      static std::unordered_set<long> *table_in_block, one;
      static std::deque<long> deque;
      struct Hundred { char bytes[100]; };
      static std::deque<Hundred> *deque_in_block;
      struct Linked { Linked *next, *previous; long number; char text[77]; };
      static Linked linked = { &linked, &linked, 7 };
      struct Buffer { char *text; size_t size, room; };
      static Buffer buffers[60];
      extern "C" void make() {
        for (int i = 0; i < 200; i++) strings[i] = std::string(20 + i * 7, 'a' + i % 26);
        for (auto &vector : vectors) for (int i = 0; i < 90; i++) vector.push_back(i);
        list_in_block = new std::list<long>;
        for (long i = 0; i < 250; i++) list.push_back(i);
        for (long i = 0; i < 30; i++) list_in_block->push_back(100 + i);
        for (int i = 0; i < 300; i++) map[i * 7919 % 1000] = i;
        set_in_block = new std::set<std::string>;
        for (int i = 0; i < 40; i++) set_in_block->insert(std::to_string(i));
        for (int i = 0; i < 400; i++) table[i * 7919] = i;
        table_in_block = new std::unordered_set<long>;
        for (long i = 0; i < 60; i++) table_in_block->insert(i);
        one.insert(1);
        for (long i = 0; i < 1000; i++) deque.push_back(i);
        deque_in_block = new std::deque<Hundred>(23);
        for (int i = 0; i < 70; i++) {
          Linked *other = new Linked { &linked, linked.previous, i };
          linked.previous->next = other;
          linked.previous = other;
        }
        for (auto &buffer : buffers) buffer = { (char *) calloc(1, 333), 300, 333 };
      }
    CXX
    expect(system("c++", "-O1", "-shared", "-fPIC", "-o", "containers.so", "containers.cc")).to be(true)
    found = facts(<<~'RUBY', prelude)
      GC.start
      # Constant data where the remnant of an address beside a colour points, as few processes have by chance.
      types = [Fiddle::TYPE_VOIDP, Fiddle::TYPE_SIZE_T, *[Fiddle::TYPE_INT] * 3, Fiddle::TYPE_LONG]
      map = Fiddle::Function.new(Fiddle::Handle::DEFAULT["mmap"], types, Fiddle::TYPE_VOIDP)
      half = File.foreach("/proc/self/maps").grep(/libc[.-]/).first.hex >> 32 << 32
      map.call(half, 4096, 1, 0x100002, File.open("/bin/sh").fileno, 0) # readable, private, replaces nothing
      Fiddle::Function.new(Fiddle.dlopen("./containers.so")["make"], [], Fiddle::TYPE_VOID).call
      found = blocks do |heap, core|
        rows = heap.histogram(by: :class, where: "type = BLOCK", limit: 1000)[:rows]
        patterns = core.summarize(:used)[:rows].select { |row| row[:kind] == "pattern" }
        strings = core.count(:used, signature: "%LongString")[:count]
        { dump: rows.to_h { |row| [row[:key][/\A<(.*)>\z/, 1], row[:count]] },
          summary: patterns.to_h { |row| [row[:name].delete_prefix("%"), row[:count]] },
          strings:, unknown: core.count(:used, signature: "?")[:count],
          without: core.count(:used, signature: "-")[:count] - patterns.sum { |row| row[:count] } }
      end
      puts JSON.generate(found)
    RUBY
    expected = {
      # Newer versions of glibc may give a large string a block that is much larger.
      "LongString" => be_between(195, 200), "VectorBody" => 50, "ListNode" => 280, "MapOrSetNode" => 340,
      "UnorderedMapOrSetBuckets" => 3, "UnorderedMapOrSetNode" => 461, "DequeMap" => 2, "DequeBlock" => 16 + 5
    }
    expect(found["summary"]).to include(expected)
    expect(found["dump"]).to include(expected)
    expect(found).to include("strings" => found["summary"]["LongString"], "unknown" => found["without"])
  end

  it "is refused where it can't be had" do
    heap = cache_dump
    result = run_memprof("top", "--blocks", heap)
    expect(result.status.exitstatus).to eq(2)
    expect(result.stderr).to include("--blocks needs a core file, and #{heap} is not one")
    expect { Memprof::Heap.open(heap, blocks: true) }.to raise_error(ArgumentError, /needs a core file/)
  end
end
