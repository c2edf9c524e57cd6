# frozen_string_literal: true

require "minitest"
require "memprof/minitest"

RSpec.describe "memprof/minitest" do
  test_class = Class.new(Minitest::Test) { def self.runnable_methods = [] }
  let(:test) { test_class.new("test") }

  def fail_with(message)
    raise_error(Minitest::Assertion, message)
  end

  describe "#assert_allocations" do
    it "takes a number, a range, classes, and sizes" do
      expect(test.assert_allocations(3) { 3.times { Object.new } }).to be(true)
      test.assert_allocations(2..5) { 3.times { Object.new } }
      test.assert_allocations(String => 2..5) { 2.times { +"a" } }
      test.assert_allocations(String => { count: 2, size: 1024 }) { 2.times { +"a" } }
      test.assert_allocations({ String => 2 }) { 2.times { +"a" } }
      test.assert_allocations(String => 2, count: 3) { [+"a", +"b"] }
      test.assert_allocations(count: 3, size: 1024) { [+"a", +"b"] }
      expect(test.assertions).to eq(7)
    end

    it "fails with expected, actual and the sites" do
      line = __LINE__ + 1
      block = -> { 3.times { +"a" } }
      expect { test.assert_allocations(String => 2, &block) }.to fail_with(
        /\Aexpected .* 2 objects of String, but it .* 3 objects of String\n.*\n.*minitest_spec.rb:#{line}/
      )
      expect { test.assert_allocations(String => 4..5, &block) }.to fail_with(/4 to 5 objects of String/)
      expect { test.assert_allocations({ size: 10 }, "greedy", &block) }.to fail_with(/\Agreedy\.?\nexpect/)
    end

    it "refuses classes without a limit" do
      expect { test.assert_allocations(String => 2) { [+"a"] } }.to fail_with(/classes that have no limit/)
    end

    it "warms up as asked, and counts the VM's objects if asked" do
      runs = 0
      test.assert_allocations(0) { runs += 1 }
      test.assert_allocations(0, warmup: 0) { runs += 1 }
      expect(runs).to eq(3)
      evaluate = -> { eval("1 + 1") }
      expect { test.assert_allocations(0, internals: true, &evaluate) }.to fail_with(/<iseq>/)
    end

    it "wants a block and limits" do
      expect { test.assert_allocations(1) }.to raise_error(ArgumentError, "block required")
      expect { test.assert_allocations { 1 } }.to raise_error(ArgumentError, /not a limit/)
      expect { test.assert_allocations(1, String => 2) { 1 } }.to raise_error(ArgumentError, /both forms/)
    end
  end

  describe "#assert_retentions" do
    it "counts what is retained" do
      kept = []
      test.assert_retentions(String => 1) { [kept << +"a", +"b"] }
      test.assert_retentions(1..1) { kept << +"a" }
      expect { test.assert_retentions(String => 0) { kept << +"a" } }.to fail_with(
        /no objects of String, but it retained 1 object of String\n.*Allocated at/
      )
    end
  end

  describe "#refute_allocations" do
    it "wants none, or none of some classes" do
      test.refute_allocations { 1 + 1 }
      test.refute_allocations(String, Hash) { [1, 2] }
      expect { test.refute_allocations { Object.new } }.to fail_with(/no objects, but it .* 1 object\n/)
      expect { test.refute_allocations(String, Array) { [+"a"] } }.to fail_with(/objects of String or Array/)
    end
  end

  describe "#refute_retentions" do
    it "wants none of classes without a name" do
      nameless = Class.new(Array)
      [Array, nameless, Enumerable].each do |klass|
        expect { test.refute_allocations(klass) { nameless.new } }.to fail_with(/allocated 1/)
      end
    end

    it "wants nothing to stay" do
      kept = []
      test.refute_retentions { [+"a"] }
      test.refute_retentions(Array) { kept << +"a" }
      expect { test.refute_retentions(String) { kept << +"a" } }.to fail_with(/retained 1 object of String/)
    end
  end

  describe "#refute_native_leaks" do
    # Recording is global; the suite's own process must not record.
    it "finds leaks of malloc, and counts what is allocated" do
      result = run_ruby(<<~'RUBY')
        require "minitest"
        require "minitest/spec"
        require "memprof/minitest"
        test = Class.new(Minitest::Test) { def self.runnable_methods = [] }.new("test")
        kept = []
        test.refute_native_leaks(times: 5) { "x" * 9_000 }
        test.assert_native_allocations("10 KB", from: "-e") { "x" * 9_000 }
        [-> { test.refute_native_leaks(times: 5, over: 8_000, from: /-e/) { kept << "x" * 9_000 } },
          -> { test.assert_native_allocations(5) { "x" * 9_000 } }].each do |check|
          check.call
        rescue Minitest::Assertion => error
          puts error.message[/but .*/]
        end
      RUBY
      expect([result.stderr, result.stdout.lines.size]).to eq(["", 2])
      expect(result.stdout).to match(/\Abut 35\.\d KiB leaked\nbut it allocated [89]\.\d KiB\n\z/)
    end
  end

  describe "#refute_leaks" do
    it "wants nothing to grow" do
      kept = []
      test.refute_leaks(times: 8) { Object.new }
      test.refute_leaks(String, times: 8) { kept << Object.new }
      expect {
        test.refute_leaks(times: 8) {
          kept << Object.new
        }
      }.to fail_with(/1 site still grew after 48 runs\n.*\n.*Object/)
    end
  end

  it "has the form of Minitest::Spec, and runs under Minitest" do
    result = run_ruby(<<~RUBY)
      # frozen_string_literal: true
      require "minitest/autorun"
      require "memprof/minitest"
      describe "memory" do
        it("passes") do
          _ { 2.times { +"a" } }.must_limit_allocations(String => 2)
          _ { 2.times { +"a" } }.must_limit_allocations(2)
          _ { +"a" }.must_limit_retentions(0)
          _ { +"a" }.wont_allocate(Array)
          _ { 1 + 1 }.wont_allocate
          _ { +"a" }.wont_retain(String)
          _ { +"a" }.wont_leak(times: 5)
        end
        it("fails") { _ { 3.times { +"a" } }.must_limit_allocations(String => 2) }
      end
    RUBY
    expect(result.stdout).to include("2 runs, 8 assertions, 1 failures, 0 errors")
    expect(result.stdout).to include("but it allocated 3 objects of String")
  end
end
