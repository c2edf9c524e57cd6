# frozen_string_literal: true

require "json"
require "tmpdir"

# Blocks of malloc as objects of a heap: one graph of Ruby and C. What is retained is compared with what malloc
# itself says that freeing it frees.
RSpec.describe "The heap of an image with blocks of malloc" do
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

  it "has the sizes that freeing documents of Nokogiri frees" do
    need(client: "nokogiri")
    found = facts(<<~'RUBY', prelude)
      require "nokogiri"
      make = -> { Nokogiri::XML("<r>#{"<a b='c'>text<d/></a>" * 2000}</r>") }
      make.call
      used
      # Where nothing is left on the machine's stack.
      Thread.new { DOCUMENTS = Array.new(50) { make.call } }.join
      GC.start
      before = blocks do |heap, _|
        documents = heap.where("class = Nokogiri::XML::Document and path ~ DOCUMENTS")
        documents = heap.where("class = Nokogiri::XML::Document") if documents.empty?
        { documents: documents.size, retained: documents.retained, blocks: heap.where("type = BLOCK").size,
          holder: heap.where("class = Array").max_by(&:retained).path.to_s }
      end
      full = used
      DOCUMENTS.clear
      3.times { Thread.new { make.call }.join; GC.start }
      rest = used
      after = blocks { |heap, _| heap.where("type = BLOCK").size }
      puts JSON.generate(before.merge(freed: full - rest, gone: before[:blocks] - after))
    RUBY
    expect(found["documents"]).to be_between(50, 52)
    expect(found["gone"]).to be > 200_000
    # What malloc counts includes a header of 8 bytes for each block.
    expect(found["retained"] + 8 * found["gone"]).to be_within(0.01 * found["freed"]).of(found["freed"])
    expect(found["holder"]).to include("DOCUMENTS")
  end

  it "knows what C code leaked, what Ruby still holds, and which words only look like addresses" do
    found = facts(<<~'RUBY', prelude)
      Thread.new { 100.times { |number| Fiddle.malloc(3001 + number) } }.join
      BUFFERS = Array.new(20) { Fiddle::Pointer.malloc(54_321, Fiddle::RUBY_FREE) }
      NUMBERS = Array.new(20) { Fiddle.malloc(7_777) } # addresses as Integers: what Ruby holds, a scan can't know
      GC.start
      found = blocks do |heap, core|
        leaked = heap.where("type = BLOCK and not reachable")
        buffers = heap.where("type = BLOCK and size >= 54321 and size < 54400 and reachable")
        known = core.each(:leaked).map { |block| Integer(block[:address]) }.sort
        { leaked: leaked.where("size > 3000 and size < 3200").size,
          held: leaked.where("size > 7776 and size < 7800").size,
          missing: (known - leaked.map(&:address)).size,
          buffers: buffers.size, path: buffers.first.path.to_s,
          retained: heap.where("class = Fiddle::Pointer").map(&:retained).max }
      end
      puts JSON.generate(found)
    RUBY
    # A word of a stack may look like the address of one.
    expect(found["leaked"]).to be_between(97, 100)
    expect(found["missing"]).to eq(0)
    expect(found["buffers"]).to eq(20)
    expect(found["path"]).to match(/BUFFERS.*Fiddle::Pointer.*BLOCK|BUFFERS.*Fiddle::Pointer.*block/m)
    expect(found["retained"]).to be >= 54_321
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
    expect(top.stdout).to match(/10\.\d MiB.*Array/)
    rows = run_memprof("histogram", "--blocks", "--by", "type", "--json", core).stdout
    block = JSON.parse(rows)["rows"].find { |row| row["key"] == "BLOCK" }
    expect(block["size"]).to be > 200 * 54_321
    expect(run_memprof("convert", "--blocks", core, "with.memprof").status.exitstatus).to eq(0)
    again = run_memprof("histogram", "--by", "type", "--json", "with.memprof").stdout
    expect(JSON.parse(again)["rows"]).to eq(JSON.parse(rows)["rows"])
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
        named = heap.where("type = BLOCK").group_by { |block| block.to_h[:struct] }
        [named.transform_values(&:size), core.summarize(:used)[:rows].to_h { |row| [row[:class], row[:count]] }]
      end
      puts JSON.generate(rows)
    RUBY
    shared = found[1].keys.compact.find { |name| name.start_with?("std::_Sp_counted_ptr_inplace<Order") }
    expect(found).to all(include("shop::Cart<long>" => 100, "Order" => 200, shared => 50))
  end

  it "is refused where it can't be had" do
    heap = cache_dump
    result = run_memprof("top", "--blocks", heap)
    expect(result.status.exitstatus).to eq(2)
    expect(result.stderr).to include("--blocks takes blocks of malloc from a core file, and #{heap} is none")
    expect { Memprof::Heap.open(heap, blocks: true) }.to raise_error(ArgumentError, /from core files only/)
  end
end
