# frozen_string_literal: true

require "memprof/rspec"

RSpec.describe Memprof::RSpec::LeakObjects do
  def fail_with(message)
    raise_error(RSpec::Expectations::ExpectationNotMetError, message)
  end

  it "finds what grows", :untyped do
    kept = []
    expect { kept << Object.new }.to leak_objects
    expect { kept << Object.new }.to leak_objects.over(10).runs.warmup(1)
  end

  it "finds nothing where nothing grows" do
    last = nil
    filled = []
    expect { Object.new }.not_to leak_objects.over(10).runs
    expect { last = Object.new }.not_to leak_objects.over(10).runs
    expect { filled << Object.new if filled.size < 3 }.not_to leak_objects.over(10).runs.warmup(3)
    expect(last).not_to be_nil
  end

  it "says what grew, how fast, and where it was allocated", :untyped do
    $kept = []
    line = __LINE__ + 1
    block = -> { 2.times { $kept << Object.new } }
    expect { expect(&block).not_to leak_objects.over(8).runs }.to fail_with(<<~MESSAGE.chomp)
      expected block not to leak objects over 8 runs, but 1 site still grew after 48 runs
        Objects/run  Class   Allocated at
              +2.00  Object  spec/memprof/rspec/leak_objects_spec.rb:#{line}
        Object at spec/memprof/rspec/leak_objects_spec.rb:#{line} retained by $kept -> Array[*]
    MESSAGE
    expect { expect { nil }.to leak_objects.over(8).runs }.to fail_with(
      "expected block to leak objects over 8 runs, but no site grew"
    )
  end

  it "says which container grew, if no object was added" do
    $kept = { numbers: [] }
    expect { expect { $kept[:numbers] << 1 }.not_to leak_objects.over(8).runs }.to fail_with(<<~MESSAGE.chomp)
      expected block not to leak objects over 8 runs, but 1 site still grew after 48 runs
        Bytes/run  Class  Allocated at
             +8 B  Array  (before the first run)
        Array retained by $kept -> Hash[*]
    MESSAGE
    expect { $kept[:numbers] << 1 }.not_to leak_objects.over(8).runs.of(String)
  end

  it "finds a container that another session recorded" do
    Memprof.start
    numbers = []
    expect { numbers << 1 }.to leak_objects.over(8).runs
  ensure
    Memprof.stop
  end

  it "looks at some classes only, if asked to" do
    kept = []
    expect { kept << Object.new }.not_to leak_objects.over(8).of(String)
    expect { kept << +"text" }.to leak_objects.over(8).of(String, Array)
  end

  it "runs as often as asked" do
    runs = 0
    expect { runs += 1 }.not_to leak_objects.over(7).runs.warmup(2)
    expect(runs).to eq(9)
  end

  it "wants a block and sense" do
    expect(leak_objects.matches?(5)).to be(false)
    expect(leak_objects.does_not_match?(5)).to be(false)
    expect { leak_objects.warmup(:x) }.to raise_error(ArgumentError, /warm-up/)
    expect { leak_objects.of(1) }.to raise_error(ArgumentError, /not a class/)
    expect(leak_objects.over(5).of(String).description).to eq("leak objects of String over 5 runs")
  end

  # In a process of its own: each run has a full collection.
  it "finds no leak in the turnover of bounded structures, and a slow leak", :untyped do
    result = run_ruby(<<~'RUBY', timeout: 300)
      require "memprof/testing"
      def verdict(name, &block) = puts("#{name} #{Memprof::Testing::Leaks.new.found?(block)}")
      random = Random.new(7)
      turn = 0
      ring = Array.new(64) { Object.new }
      verdict("ring") { ring[(turn += 1) % 64] = Object.new }
      memo = {}
      verdict("memo") { memo[random.rand(15)] ||= Object.new }
      large = {}
      verdict("large memo") { large[random.rand(100)] ||= Object.new }
      cache = {}
      verdict("lru") do
        key = random.rand(30)
        cache[key] = cache.delete(key) || Object.new
        cache.shift if cache.size > 10
      end
      kept = []
      verdict("leak") { kept << Object.new if ((turn += 1) % 5).zero? }
      nameless = Class.new
      verdict("nameless") { kept << nameless.new }
      of = Memprof::Testing::Leaks.new(times: 8, classes: [nameless])
      puts of.found?(-> { kept << nameless.new }), of.found?(-> { kept << Class.new.new })
    RUBY
    expect(result.stderr).to eq("")
    verdicts = ["ring false", "memo false", "large memo false", "lru false", "leak true", "nameless true"]
    verdicts << "true" << "false"
    expect(result.stdout.lines(chomp: true)).to eq(verdicts)
  end

  # In a process of its own, as above.
  it "finds containers that grow, though the number of objects does not", :untyped do
    result = run_ruby(<<~'RUBY', timeout: 600)
      require "memprof/testing"
      def verdict(name, times = 8, &block)
        puts("#{name} #{Memprof::Testing::Leaks.new(times: times).found?(block)}")
      end
      turn = 0
      random = Random.new(7)
      numbers = []
      verdict("numbers") { numbers << (turn += 1) }
      verdict("slow numbers", 20) { numbers << turn if ((turn += 1) % 5).zero? }
      text = +""
      verdict("text") { text << "0123456789" }
      pairs = {}
      verdict("hash") { pairs[turn += 1] = true }
      require "set"
      set = Set.new
      verdict("set") { set << (turn += 1) }
      copied = nil
      verdict("copied") { copied = [*copied, 1] }
      few = {}
      verdict("few keys", 20) { few[random.rand(15)] = turn }
      queue = []
      verdict("queue", 20) { queue << (turn += 1); queue.shift if queue.size > 50 }
      buffer = +""
      verdict("buffer") { buffer << "text"; buffer.clear if buffer.size > 100 }
      verdict("last") { copied = "request #{turn += 1}" }
    RUBY
    expect(result.stderr).to eq("")
    grown = ["numbers", "slow numbers", "text", "hash", "set", "copied"].map { |name| "#{name} true" }
    constant = ["few keys", "queue", "buffer", "last"].map { |name| "#{name} false" }
    expect(result.stdout.lines(chomp: true)).to eq(grown + constant)
  end

  # From its first Ractor on, Ruby shows only what Ractors share (ObjectSpace.each_object).
  it "finds a leak after a Ractor has ended" do
    result = run_ruby(<<~RUBY, timeout: 300)
      require "memprof/testing"
      ractor = Ractor.new { 1 }
      ractor.respond_to?(:value) ? ractor.value : ractor.take
      Row = Class.new
      kept = []
      puts Memprof::Testing::Leaks.new(times: 8).found?(-> { kept << Row.new })
      puts Memprof::Testing::Leaks.new(times: 8).found?(-> { kept << 1 })
      puts Memprof::Testing::Leaks.new(times: 8).found?(-> { Row.new })
      puts Memprof.growth(times: 8) { kept << Row.new }.map(&:class_name)
    RUBY
    expect(result.stdout.lines(chomp: true)).to eq(%w[true true false Row])
  end

  it "finds no verdict if the VM reported no allocations for a while" do
    skip "this Ruby tracks beside Ractors" if RUBY_VERSION >= "3.1.4"

    result = run_ruby(<<~RUBY, timeout: 300)
      require "memprof/testing"
      begin
        Memprof::Testing::Leaks.new(times: 8).found?(-> { Ractor.new { 1 }.take })
      rescue Memprof::Error => error
        puts error.message
      end
    RUBY
    expect(result.stdout).to start_with("it is unknown whether anything grows: a Ractor ran")
  end
end
