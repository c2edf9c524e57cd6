# frozen_string_literal: true

require "json"
require "tmpdir"

# Which line a block is allocated at where the innermost frame of Ruby is the VM's own.
RSpec.describe "The line of a block" do
  around { |example| Dir.mktmpdir { |path| Dir.chdir(path) { example.run } } }

  before { skip "malloc is recorded on Linux" unless RUBY_PLATFORM.include?("linux") }

  # Each allocates a megabyte: methods that newer Rubies have in Ruby (<internal:marshal>), `require`,
  # and one in C.
  let(:program) { <<~RUBY }
    data = Marshal.dump(Array.new(100) { "x" * 10_000 })
    packed = "x" * 1_000_000
    GC.disable
    $keep = []
    def load_all(data) = $keep << Marshal.load(data)
    def unpack(packed) = $keep << packed.unpack1("a*")
    def read = File.open("megabyte") { |io| $keep << io.read_nonblock(1_000_000) }
    def loaded = require("./loaded")
    def times = $keep << 1.times.map { "x" * 1_000_000 }
    record do
      3.times { load_all(data) }
      unpack(packed)
      read
      loaded
      times
    end
  RUBY

  let(:lines) { { 5 => 3_000_000, 6 => 1_000_000, 7 => 1_000_000, 9 => 1_000_000 } }

  # Bytes by place.
  def allocated(definition)
    File.write("megabyte", "x" * 1_000_000)
    File.write("loaded.rb", "")
    File.write("app.rb", definition.lines.map(&:chomp).join(";") + ";#{program}")
    result = run_ruby("app.rb")
    expect(result.stderr).to eq("")
    JSON.parse(result.stdout)
  end

  def expect_lines(places)
    lines.each do |line, bytes|
      # What reads a file may have a buffer of its own.
      expect(places).to include("app.rb:#{line}" => a_value_between(bytes, (bytes * 1.2) + (1 << 20)))
    end
    expect(places.keys.grep(/\A<internal:/)).to eq([])
    expect(places["app.rb:8"]).to be_between(1_000, 1_000_000)
  end

  in_memory = <<~RUBY
    require "memprof"; require "json"
    def record(&block) = (Memprof::Malloc.start(stack: %d, native: %s); block.call; Memprof::Malloc.stop
      puts JSON.generate(Memprof::Malloc.locations.to_h { |one| [one.name, one.total] }))
  RUBY

  in_file = <<~RUBY
    require "memprof"; require "json"
    def record(&block) = (Memprof::Malloc.record("app.malloc", stack: %d, native: %s, &block)
      all = Memprof::Malloc::Recording.new("app.malloc").to_h[:locations]
      puts JSON.generate(all.to_h { |one| one.values_at(:location, :allocated_bytes) }))
  RUBY

  { "in memory" => in_memory, "in a file" => in_file }.each do |where, definition|
    [[1, false], [30, false], [30, true]].each do |stack, native|
      it "is the user's, #{where}, with #{stack} frames#{" and native ones" if native}" do
        expect_lines(allocated(format(definition, stack, native)))
      end
    end
  end

  it "is the user's once positions are known" do
    program = <<~RUBY
      require "memprof"
      data = Marshal.dump("x" * 10_000)
      GC.disable
      Memprof::Malloc.start
      2_000.times do
        Marshal.load(data)
        Marshal.load(data)
      end
      Memprof::Malloc.stop
      puts [6, 7].map { |line| Memprof::Malloc["app.rb:\#{line}"].total }.inspect
    RUBY
    File.write("app.rb", program)
    totals = JSON.parse(run_ruby("app.rb").stdout)
    expect(totals).to all(be_between(20_000_000, 22_000_000))
  end

  it "has its callers, though the first stack is that of an extension that is being loaded" do
    File.write("app.rb", <<~RUBY)
      require "memprof"
      extension = $LOAD_PATH.map { |directory| "\#{directory}/ripper.so" }.find { |path| File.file?(path) }
      Memprof::Malloc.start(stack: 30)
      require extension
      def inner = $keep = "x" * 100_000
      inner
      Memprof::Malloc.stop
      puts Memprof::Malloc.tree_text(:bottom_up)
    RUBY
    result = run_ruby("app.rb", ruby_args: ["--disable-gems"])
    expect(result.stderr).to eq("")
    expect(result.stdout).to match(/ inner \(app\.rb:5\)\n +<main> \(app\.rb:6\)$/)
  end

  it "has its callers in ruby -e" do
    command = "def inner = $keep = 'x' * 100_000\ninner\nload './loaded.rb'"
    File.write("loaded.rb", "def other = $other = 'x' * 100_000\nother")
    run_memprof("run", "--malloc", "-o", "e.malloc", "--", RbConfig.ruby, "-e", command)
    tree = run_memprof("malloc", "--callers", "e.malloc").stdout
    expect(tree).to match(/ inner \(-e:1\)\n +<main> \(-e:2\)$/)
    expect(tree).to match(/ other \(loaded\.rb:1\)\n +<[^>]+> \(loaded\.rb:2\)\n(.*\n)* +<main> \(-e:3\)$/)
  end

  # Each line that is recorded is a line of the program or of the standard library.
  [1, 30].each do |stack|
    it "is never memprof's own, with #{stack} frames" do
      result = run_ruby(<<~RUBY)
        require "memprof"
        Memprof::Malloc.record("own.malloc", stack: #{stack}) do
          Memprof.start
          $keep = [Memprof.report { "x" * 100_000 }.to_s, Memprof.memory.to_s, Memprof.growth(times: 4) { 1 }.to_s]
          Memprof.stop
          require "memprof/memory_profiler"
        end
      RUBY
      expect(result.stderr).to eq("")
      table = run_memprof("malloc", "--limit", "100000", "own.malloc").stdout
      expect(table).to match(/ -e:4$/)
      expect(table.lines.grep(%r{lib/memprof[/.]})).to eq([])
    end
  end

  it "is a function that its library does not export, where no Ruby runs" do
    skip "this Ruby has no fiddle" if Servers.obstacle(nil, "fiddle", nil)
    File.write("leakx.c", <<~C)
      #include <stdlib.h>
      static __attribute__((noinline)) void *hidden(size_t size) { void *volatile block = malloc(size); return block; }
      void *leak(void) { void *volatile block = hidden(500000); return block; }
    C
    skip "there is no C compiler" unless system("cc", "-O0", "-g", "-shared", "-fPIC", "-o", "leakx.so",
      "leakx.c")
    result = run_ruby(<<~RUBY)
      require "memprof"
      require "fiddle"
      leak = Fiddle::Function.new(Fiddle.dlopen(File.expand_path("leakx.so"))["leak"], [], Fiddle::TYPE_VOIDP)
      Memprof::Malloc.start
      leak.call
      Memprof::Malloc.stop
      puts Memprof::Malloc.table(limit: 1)
      name = Memprof::Malloc.locations.map(&:name).grep(/hidden/).first
      puts Memprof::Malloc[name].live_bytes, Memprof::Malloc.total_bytes_allocated >= 500_000
    RUBY
    expect(result.stderr).to eq("")
    expect(result.stdout).to match(/ leakx\.so\(hidden\+0x\h+\) \[0x\h+\] leakx\.c:2$/)
      .and end_with("\n500000\ntrue\n")
  end
end
