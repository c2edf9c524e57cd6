# frozen_string_literal: true

require "json"
require "tmpdir"

# What other allocators do when they are preloaded, as they are in production.
RSpec.describe "Memprof::Malloc with a preloaded allocator" do
  before(:all) do
    @directory = Dir.mktmpdir
    @library = File.join(@directory, "blocks.so")
    source = File.join(@directory, "blocks.cc")
    File.write(source, <<~CPLUSPLUS)
      #include <stdlib.h>
      #include <string.h>
      extern "C" {
      void *by_malloc(void) { return malloc(4500); }
      void *by_aligned(void) { return aligned_alloc(64, 6400); }
      void *by_array(void) { return reallocarray(NULL, 50, 100); }
      void *by_copy(void) { char text[4000]; memset(text, 'x', 3999); text[3999] = 0; return strdup(text); }
      void *by_new(void) { return new char[7000]; }
      void give(void *block) { free(block); }
      void give_new(void *block) { delete[] static_cast<char *>(block); }
      }
    CPLUSPLUS
    @built = system("c++", "-O0", "-shared", "-fPIC", "-o", @library, source, err: File::NULL)
  end

  before do
    skip "malloc is recorded on Linux" unless RUBY_PLATFORM.include?("linux")
    skip "there is no compiler for C++" unless @built
  end

  after(:all) { FileUtils.rm_rf(@directory) }

  # Ten of each, of which three are freed; [blocks, bytes, live blocks, live bytes] by size of a block.
  code = <<~'RUBY'
    require "memprof/malloc"
    require "fiddle"
    require "json"
    library = Fiddle.dlopen(ARGV[0])
    call = ->(name, arguments, result) { Fiddle::Function.new(library[name], arguments, result) }
    free = %w[give give_new].to_h { |name| [name, call.call(name, [Fiddle::TYPE_VOIDP], Fiddle::TYPE_VOID)] }
    makers = %w[malloc aligned array copy new].to_h do |name|
      [name, call.call("by_#{name}", [], Fiddle::TYPE_VOIDP)]
    end
    Memprof::Malloc.start
    makers.each do |name, maker|
      blocks = Array.new(10) { maker.call }
      blocks.first(3).each { |block| free[name == "new" ? "give_new" : "give"].call(block) }
    end
    Memprof::Malloc.stop
    # Fiddle releases the GVL, so the blocks are those of native code.
    native = Memprof::Malloc.locations.select { |one| one.allocations == 10 && one.total >= 40_000 }
    counts = native.to_h { |one| [one.total / 10, [one.allocations, one.total, one.live, one.live_bytes]] }
    puts JSON.generate(counts: counts, missed: Memprof::Malloc.missed, maps: File.read("/proc/self/maps"))
  RUBY

  exact = ->(size) { [10, 10 * size, 7, 7 * size] }
  # By malloc, aligned_alloc, reallocarray, strdup.
  all = [4500, 6400, 5000, 4000].to_h { |size| [size.to_s, exact.call(size)] }

  define_method(:counted) do |library|
    result = run_ruby(code, args: [@library], env: { "LD_PRELOAD" => library })
    raise result.stderr unless result.status.success?

    JSON.parse(result.stdout).tap do |answer|
      skip "#{library} is not installed" if library && !answer["maps"].include?(library)
      expect(answer["missed"]).to eq(0)
    end["counts"]
  end

  it "counts aligned_alloc, reallocarray, strdup and operator new with libc's own" do
    expect(counted(nil)).to eq(all.merge("7000" => exact.call(7000)))
  end

  # They have an operator new of their own, which calls no malloc.
  %w[libjemalloc.so.2 libtcmalloc_minimal.so.4].each do |library|
    it "counts the same with #{library}, but not its operator new" do
      expect(counted(library)).to eq(all)
    end
  end
end
