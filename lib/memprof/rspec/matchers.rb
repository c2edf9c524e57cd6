# frozen_string_literal: true

begin
  require "rspec/expectations"
rescue LoadError => error
  raise LoadError, "memprof/rspec needs RSpec, which cannot be loaded (#{error.message}): " \
    "install the gem rspec, or use memprof/minitest", cause: nil
end

require_relative "../testing"
require_relative "block_matcher"
require_relative "budget_matcher"
require_relative "amount_matcher"
require_relative "native_matcher"
require_relative "perform_allocation"
require_relative "limit_allocations"
require_relative "leak_objects"

module Memprof
  # RSpec matchers; `require "memprof/rspec"` includes them in all examples.
  module RSpec
    # Matchers that count the objects a block allocates and retains.
    #
    # - Counts objects of the calling thread and of threads that the block starts, and of no others.
    # - A number is an upper limit, a range a window: `allocate_at_most(5)`, `allocate_at_most(2..5)`.
    # - The block runs once before it is measured, so that first-run allocations do not count; see
    #   {BudgetMatcher#warmup}. Joined with another block matcher (`.and change { }`) it runs only once.
    # - With `.and raise_error`, in either order, allocations of the block up to the exception count,
    #   including the exception and its backtrace.
    # - The VM's own objects (`<iseq>`, `<callcache>`) do not count: their number varies. See
    #   {BudgetMatcher#with_internal_objects}.
    # - Retained objects are those still alive after a full GC, without the block's value.
    # - `expect { }.not_to allocate_at_most(5)` requires more than five.
    module Matchers
      # Passes if the block allocates no more than the limit.
      #
      # @param limit [Numeric, Range, Hash{Module => Numeric, Range}] a Hash sets a limit per class
      # @return [AllocateAtMost]
      # @raise [ArgumentError] if the limit is invalid
      #
      # @example
      #   RSpec.describe "a greeting" do
      #     it "is built cheaply" do
      #       expect { "hello, #{1}" }.to allocate_at_most(2)
      #       expect { "hello" * 100 }.to allocate_at_most(1000).bytes
      #       expect { [:a.to_s, :b.to_s] }.to allocate_at_most(2).objects.of(String)
      #       expect { [:a.to_s, :b.to_s] }.to allocate_at_most({ String => 2, Array => 1 })
      #       expect { [:a.to_s] }.to allocate_at_most(5).and retain_at_most(0)
      #     end
      #   end
      def allocate_at_most(limit) = AllocateAtMost.new(limit)

      # Passes if the block retains no more objects than the limit.
      #
      # @param limit (see #allocate_at_most)
      # @return [RetainAtMost]
      # @raise (see #allocate_at_most)
      #
      # @example
      #   RSpec.describe "a cache" do
      #     it "keeps one string" do
      #       cache = []
      #       expect { cache << :kept.to_s }.to retain_at_most(1).of(String)
      #     end
      #   end
      def retain_at_most(limit) = RetainAtMost.new(limit)

      # Passes if the live objects of some site grow from run to run of the block, as found by
      # {Memprof.growth}. Mostly used as `not_to leak_objects`.
      #
      # @return [LeakObjects]
      #
      # @example
      #   RSpec.describe "a parser" do
      #     it "keeps nothing" do
      #       expect { "a,b".split(",") }.not_to leak_objects.over(10).runs.warmup(2)
      #     end
      #   end
      def leak_objects = LeakObjects.new

      # Passes if live malloc memory of the block grows from run to run: in C extensions, in libraries that
      # they use, in Ruby objects. Mostly used as `not_to leak_native_memory`. Counts live bytes exactly, with
      # {Malloc}; ignores the RSS, which drifts by itself.
      #
      # @param over [Integer, String] total bytes that may leak in all runs: `65_536`, `"64 KiB"`
      # @return [LeakNativeMemory]
      # @raise [ArgumentError] if it is not a size
      #
      # @example
      #   RSpec.describe "a digest" do
      #     it "frees its buffers" do
      #       expect { "a,b".split(",") }.not_to leak_native_memory(over: "64 KiB")
      #       expect { "a,b".split(",") }.not_to leak_native_memory.from(/rdkafka/).times(10)
      #     end
      #   end
      def leak_native_memory(over: "64 KiB") = LeakNativeMemory.new(over)

      # Passes if the block mallocs no more bytes than the limit, including freed ones, on all threads.
      #
      # @param limit [Integer, String] bytes: `1_048_576`, `"1 MiB"`
      # @return [AllocateNativeAtMost]
      # @raise [ArgumentError] if it is not a size
      #
      # @example
      #   RSpec.describe "a report" do
      #     it "needs little memory" do
      #       expect { "a" * 1000 }.to allocate_native_at_most("64 KiB")
      #     end
      #   end
      def allocate_native_at_most(limit) = AllocateNativeAtMost.new(limit)

      # The name used by rspec-benchmark. Here, classes in a Hash don't include their subclasses.
      #
      # @param limit (see #allocate_at_most)
      # @return [PerformAllocation]
      # @raise (see #allocate_at_most)
      #
      # @example
      #   RSpec.describe "a list" do
      #     it "is small" do
      #       expect { [Object.new] }.to perform_allocation(2).and_retain(0)
      #       expect { [Object.new] }.to perform_allocation({ Array => 1, Object => 1 }).objects
      #     end
      #   end
      def perform_allocation(limit, warmup: nil)
        matcher = PerformAllocation.new(limit)
        warmup ? matcher.warmup(warmup) : matcher
      end

      # The name used by rspec-memory. Unnamed classes must not be allocated, unless `count:` or `size:`
      # limits all of them together. Numbers are upper bounds.
      #
      # @param limits [Hash{Module => Numeric, Range, Hash}]
      # @param count [Numeric, Range, nil] objects of all classes
      # @param size [Numeric, Range, nil] bytes of all classes, including slots
      # @return [LimitAllocations]
      # @raise (see #allocate_at_most)
      #
      # @example
      #   RSpec.describe "strings" do
      #     it "are few" do
      #       expect { 6.times { String.new } }.to limit_allocations(String => 10)
      #       expect { 6.times { String.new } }.to limit_allocations(String => { count: 10, size: 1024 })
      #       expect { 6.times { String.new } }.to limit_allocations(count: 10).of(String, count: 6)
      #     end
      #   end
      def limit_allocations(limits = {}, count: nil, size: nil, **more)
        LimitAllocations.new({ **limits, **more, count: count, size: size }.compact)
      end
    end
  end
end
