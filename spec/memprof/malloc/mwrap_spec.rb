# frozen_string_literal: true

# What mwrap's users rely on beyond spec/memprof/malloc_spec.rb.
RSpec.describe "Memprof::Malloc, in mwrap's place" do
  before { skip "malloc is recorded on Linux" unless RUBY_PLATFORM.include?("linux") }

  it "clears, leaves signals to the program, sums up, and finds native locations by address" do
    settings = { "MEMPROF_MALLOC" => "dump_fd:1,dump_min:9999" }
    result = run_ruby(<<~'RUBY', ruby_args: ["-rmemprof/malloc"], env: settings)
      ("helloworld" * 1000).clear
      Memprof::Malloc.clear
      ("helloworld" * 2000).clear
      count = 0
      trap(:USR1) { count += 1 }
      10.times { Process.kill(:USR1, $$) }
      sleep 0.01 until count.positive?
      freed, allocated = Memprof::Malloc.total_bytes_freed, Memprof::Malloc.total_bytes_allocated
      warn [allocated > freed, freed > 20_000].inspect
      native = Memprof::Malloc.locations.map(&:name).grep(/\[0x/).first
      warn [Memprof::Malloc["bobloblaw\t#{native[/\[0x\h+\]/]}"].class, native.frozen?].inspect if native
    RUBY
    expect(result.stdout).to match(/\A +2000\d +1 -e:3\n\z/)
    expect(result.stderr).to match(/\A\[true, true\]\n(\[Memprof::Malloc::Location, true\]\n)?\z/)
  end

  it "lists the pages of Ruby's heap" do
    pages = Memprof::Malloc.heap_pages
    # Those without an object are not listed. Ruby 4.0 counts how many are in no heap.
    allocated = GC.stat(:heap_allocated_pages)
    expect(pages.size).to be_between((allocated - GC.stat[:heap_empty_pages].to_i) / 2, allocated)
    expect(pages.map { |page| page.address % (16 * 1024) }.uniq).to eq([0])
    expect(pages.map(&:address).uniq.size).to eq(pages.size)
    expect(pages.sum(&:used)).to be_within(GC.stat(:heap_live_slots) / 5).of(GC.stat(:heap_live_slots))
    expect(pages).to all(satisfy { |page| page.used.between?(0, page.slots) && page.slot_size >= 32 })
    expect(pages.first.inspect).to match(/\A#<\S+HeapPage 0x\h+: \d+ of \d+ slots of \d+ bytes>\z/)
  end
end
