# frozen_string_literal: true

require "memprof/rspec"

RSpec.describe "Matchers of native memory" do
  # Recording is global; the suite's own process must not record.
  def in_child(code, *options)
    begin
      require "fiddle"
    rescue LoadError
      skip "fiddle is not installed" # no default gem any more since Ruby 4.0
    end
    result = run_ruby(<<~RUBY, *options)
      require "memprof/rspec"
      require "fiddle"
      include RSpec::Matchers, Memprof::RSpec::Matchers
      def message
        yield
        "passed"
      rescue RSpec::Expectations::ExpectationNotMetError => error
        error.message
      end
      #{code}
    RUBY
    expect(result.stderr).to eq("")
    expect(result).to be_success
    result.stdout
  end

  it "finds a leak to the byte, names its line, and finds none where blocks are freed, or a cache fills" do
    expect(in_child(<<~'RUBY').lines(chomp: true)).to eq(<<~TEXT.lines(chomp: true))
      leak = -> { 2.times { Fiddle.malloc(2048) } }
      cache = {}
      puts message { expect(&leak).to leak_native_memory(over: "64 KiB") }
      puts message { expect(&leak).not_to leak_native_memory(over: "64 KiB").from("-e") }
      puts message { expect { Fiddle.free(Fiddle.malloc(50_000)) }.not_to leak_native_memory(over: 0) }
      puts message { expect { cache[cache.size % 5] = "x" * 50_000 }.not_to leak_native_memory(over: 0).warmup(6) }
      puts message { expect(&leak).not_to leak_native_memory(over: "80 KB").from(/rdkafka/).times(5).warmup(0) }
      puts message { expect(&leak).not_to leak_native_memory(over: "1 MiB") }
      # A child's own leaks are its own.
      puts message { expect { Process.wait(fork { leak.call; exit!(0) }) }.not_to leak_native_memory(over: 4096).times(5) }
      # And those of a thread are seen.
      puts message { expect { Thread.new(&leak).join }.to leak_native_memory.from(/-e:10\z/) }
      puts message { expect(&leak).to leak_native_memory(over: "1 GiB") }
      p Memprof::Malloc.running?
    RUBY
      passed
      expected block not to leak more than 64.0 KiB of native memory over 20 runs from "-e", but 76.0 KiB leaked
          Leaked  Bytes/run  Allocated at
        76.0 KiB    4.0 KiB  -e:10
      passed
      passed
      passed
      passed
      passed
      passed
      expected block to leak more than 1.0 GiB of native memory over 20 runs, but 76.0 KiB leaked
      false
    TEXT
  end

  it "finds what is leaked while the collector frees objects" do
    expect(in_child(<<~'RUBY').gsub(/ +/, " ")).to match(/#{<<~'TEXT'}/m)
      text = "x" * 8000
      copy = Fiddle.dlopen(nil)["strdup"] # a function that frees a pointer; this one leaks a copy of it
      block = -> { Fiddle::Pointer.new(Fiddle::Pointer[text], 0, copy) && nil }
      puts message { expect(&block).not_to leak_native_memory(over: "64 KiB") }
      finalizer = proc { Fiddle.malloc(8192) }
      block = -> { ObjectSpace.define_finalizer(Object.new, finalizer) && nil }
      puts message { expect(&block).not_to leak_native_memory(over: "64 KiB") }
      puts message { expect { Object.new && nil }.not_to leak_native_memory(over: "1 KiB") }
    RUBY
      \Aexpected block not to leak more than 64.0 KiB of native memory over 20 runs, but 1[45]\d\.\d KiB leaked
       Leaked Bytes\/run Allocated at
       1[45]\d\.\d KiB [78]\.\d KiB (?:\(garbage collection\)|\S*libc\.so[^\n]+)
      expected block not to leak more than 64.0 KiB of native memory over 20 runs, but 1[45]\d\.\d KiB leaked
       Leaked Bytes\/run Allocated at
       1[45]\d\.\d KiB [78]\.\d KiB -e:14
      passed
    TEXT
  end

  it "counts what a block allocates by malloc" do
    expect(in_child(<<~'RUBY').lines(chomp: true)).to eq(<<~TEXT.lines(chomp: true))
      block = -> { Fiddle.free(Fiddle.malloc(300_000)) }
      puts message { expect(&block).to allocate_native_at_most(301_000) }
      puts message { expect(&block).not_to allocate_native_at_most("300 KB").from(/dkafka/) }
      puts message { expect(&block).to allocate_native_at_most("100 KiB").from(/-e:/).warmup(2) }
      puts message { expect {}.to allocate_native_at_most(0) }
      puts message { expect(&block).to allocate_native_at_most(300_000) }
    RUBY
      passed
      expected block not to allocate at most 293.0 KiB of native memory from /dkafka/, but it allocated 0 B
      expected block to allocate at most 100.0 KiB of native memory from /-e:/, but it allocated 293.0 KiB
        Allocated  Allocated at
        293.0 KiB  -e:10
      passed
      passed
    TEXT
  end

  it "wants a block and sense" do
    expect(leak_native_memory.matches?(5)).to be(false)
    expect(allocate_native_at_most(5).does_not_match?(5)).to be(false)
    expect { leak_native_memory(over: "much") }.to raise_error(ArgumentError,
      '"much" is not a size: give bytes, or as "64 KiB"')
    expect { leak_native_memory(over: -1) }.to raise_error(ArgumentError, /not a size/)
    expect { leak_native_memory.warmup(:x) }.to raise_error(ArgumentError, /warm-up/)
    expect { leak_native_memory.times(2).matches?(-> {}) }.to raise_error(ArgumentError, /at least 4/)
    expect { leak_native_memory.from(5).matches?(-> {}) }.to raise_error(ArgumentError, /not a location/)
    expect(leak_native_memory(over: "1.5 MB").failure_message_when_negated).to eq(
      "expected a block not to leak more than 1.4 MiB of native memory over 20 runs, but got none"
    )
  end
end
