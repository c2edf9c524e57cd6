# frozen_string_literal: true

require_relative "../testing"

module Memprof
  # Minitest assertions; `require "memprof/minitest"` includes them in all tests.
  module Minitest
    # Assertions that count the objects a block allocates and retains.
    #
    # - Counts objects of the calling thread and of threads that the block starts, and of no others.
    # - A number is an upper limit, a range a window.
    # - The block runs `warmup` times (once) before it is measured, so that first-run allocations do not
    #   count. Code that must run only once needs `warmup: 0`.
    # - The VM's own objects (`<iseq>`, `<callcache>`) do not count, unless `internals: true`.
    # - Retained objects are those still alive after a full GC, without the block's value.
    module Assertions
      # Fails if the block allocates more than the limits. Limits by class are complete: objects of other
      # classes fail, too, unless `count:` or `size:` limits all of them together.
      #
      # @param limits [Numeric, Range, Hash, nil] objects in total; or by class, such as `String => 2..5` and
      #   `String => { count: 5, size: 1024 }` (sizes are bytes, including slots)
      # @param message [String, Proc, nil] printed before the failure message
      # @param warmup [Integer] runs before the one that counts
      # @param internals [Boolean] also count the VM's own objects
      # @yield the code to measure
      # @return [true]
      # @raise [Minitest::Assertion] if a limit is exceeded
      # @raise [ArgumentError] if a limit is invalid
      #
      # @example
      #   class GreetingTest < Minitest::Test
      #     def test_it_is_cheap
      #       assert_allocations(2) { "hello, #{1}" }
      #       assert_allocations(String => 1..2) { "hello, #{1}" }
      #       assert_allocations(count: 10, size: 4096) { "hello" * 10 }
      #     end
      #   end
      def assert_allocations(limits = nil, message = nil,
        warmup: Testing::WARMUP, internals: false, **more, &block)
        limits = memprof_limits(limits, more)
        budget = Testing::Budget.read(limits, kind: :allocated, strict: true, internals: internals)
        memprof_assert(budget, message, warmup, block)
      end

      # Fails if the block retains more objects than the limits allow.
      #
      # @param (see #assert_allocations)
      # @yield (see #assert_allocations)
      # @return (see #assert_allocations)
      # @raise (see #assert_allocations)
      #
      # @example
      #   class CacheTest < Minitest::Test
      #     def test_it_keeps_one_string
      #       cache = []
      #       assert_retentions(String => 1) { cache << :kept.to_s }
      #     end
      #   end
      def assert_retentions(limits = nil, message = nil,
        warmup: Testing::WARMUP, internals: false, **more, &block)
        budget = Testing::Budget.read(memprof_limits(limits, more), kind: :retained, internals: internals)
        memprof_assert(budget, message, warmup, block)
      end

      # Fails if the block allocates objects of these classes or their subclasses, or, without arguments, of
      # any class.
      #
      # @param classes [Array<Module, String>]
      # @param warmup [Integer] runs before the one that counts
      # @param internals [Boolean] also count the VM's own objects, if no class is given
      # @yield (see #assert_allocations)
      # @return (see #assert_allocations)
      # @raise [Minitest::Assertion] if it allocates such objects
      # @raise [ArgumentError] if one is not a class
      #
      # @example
      #   class SumTest < Minitest::Test
      #     def test_it_allocates_nothing
      #       refute_allocations { 1 + 1 }
      #       refute_allocations(String, Hash) { [1, 2] }
      #     end
      #   end
      def refute_allocations(*classes, warmup: Testing::WARMUP, internals: false, &block)
        memprof_assert(memprof_none(:allocated, classes, internals), nil, warmup, block)
      end

      # Fails if the block retains objects of these classes or their subclasses, or, without arguments, of any
      # class.
      #
      # @param (see #refute_allocations)
      # @yield (see #refute_allocations)
      # @return (see #refute_allocations)
      # @raise (see #refute_allocations)
      #
      # @example
      #   class SplitTest < Minitest::Test
      #     def test_it_keeps_nothing
      #       refute_retentions { "a,b".split(",") }
      #     end
      #   end
      def refute_retentions(*classes, warmup: Testing::WARMUP, internals: false, &block)
        memprof_assert(memprof_none(:retained, classes, internals), nil, warmup, block)
      end

      # Fails if the live objects of a site grow from run to run of the block, as found by {Memprof.growth}.
      #
      # @param classes [Array<Module, String>] classes to consider; all if empty
      # @param times [Integer] counted runs
      # @param warmup [Integer] runs before those
      # @param internals [Boolean] include the VM's own objects
      # @yield (see #assert_allocations)
      # @return (see #assert_allocations)
      # @raise [Minitest::Assertion] if something grows
      # @raise [ArgumentError] if an option is out of range
      #
      # @example
      #   class ParserTest < Minitest::Test
      #     def test_it_does_not_leak
      #       refute_leaks(times: 10) { "a,b".split(",") }
      #     end
      #   end
      def refute_leaks(*classes, times: 20, warmup: 3, internals: false, &block)
        leaks = Testing::Leaks.new(times: times, warmup: warmup, classes: classes)
        leaks.internals = internals
        memprof_refute(leaks, block)
      end

      # Fails if live malloc memory of the block grows from run to run: in C extensions, in libraries that
      # they use, in Ruby objects. Counts live bytes exactly, with {Malloc}.
      #
      # @param over [Integer, String] total bytes that may leak in all runs: `65_536`, `"64 KiB"`
      # @param from [Regexp, String, nil] locations to consider: lines of Ruby, libraries
      # @param times [Integer] counted runs, at least 4
      # @param warmup [Integer] runs before those
      # @yield (see #assert_allocations)
      # @return (see #assert_allocations)
      # @raise [Minitest::Assertion] if more leaked
      # @raise [ArgumentError] if an option is out of range
      #
      # @example
      #   class DigestTest < Minitest::Test
      #     def test_it_frees_its_buffers
      #       refute_native_leaks(over: "64 KiB") { "a,b".split(",") }
      #     end
      #   end
      def refute_native_leaks(over: "64 KiB", from: nil, times: 20, warmup: 3, &block)
        memprof_refute(Testing::NativeLeaks.new(over, from: from, times: times, warmup: warmup), block)
      end

      # Fails if the block allocates more malloc bytes than the limit, including freed ones, on all threads.
      #
      # @param limit [Integer, String] bytes: `1_048_576`, `"1 MiB"`
      # @param from [Regexp, String, nil] locations to consider
      # @param warmup [Integer] runs before the one that counts
      # @yield (see #assert_allocations)
      # @return (see #assert_allocations)
      # @raise [Minitest::Assertion] if the limit is exceeded
      # @raise [ArgumentError] if an option is out of range
      #
      # @example
      #   class ReportTest < Minitest::Test
      #     def test_it_needs_little_memory
      #       assert_native_allocations("64 KiB") { "a" * 1000 }
      #     end
      #   end
      def assert_native_allocations(limit, from: nil, warmup: Testing::WARMUP, &block)
        raise ArgumentError, "block required" unless block

        allocations = Testing::NativeAllocations.new(limit, from: from, warmup: warmup)
        within = allocations.within?(block)
        assert(within, -> { allocations.message })
      end

      private

      # In Ruby, `assert_allocations(String => 1)` passes keywords, `assert_allocations({ String => 1 })` a
      # Hash.
      def memprof_limits(limits, more)
        return limits if more.empty?
        return more if limits.nil?
        return limits.merge(more) if limits.is_a?(Hash)

        raise ArgumentError, "limits in both forms: #{limits.inspect} and #{more.inspect}"
      end

      def memprof_none(kind, classes, internals)
        keys = classes if classes.any?
        Testing::Budget.new([Testing::Rule.new(kind, :objects, 0, keys: keys, internals: internals)])
      end

      def memprof_refute(leaks, block)
        raise ArgumentError, "block required" unless block

        found = leaks.found?(block)
        assert(!found, -> { leaks.message })
      end

      def memprof_assert(budget, text, warmup, block)
        raise ArgumentError, "block required" unless block

        outcome = budget.judge(Testing::Measurement.new(block, budget.plan(Testing.check_warmup(warmup))))
        assert(outcome.pass?, message(text, "") { outcome.message })
      end
    end
  end
end
