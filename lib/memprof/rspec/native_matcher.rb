# frozen_string_literal: true

module Memprof
  module RSpec
    # Base class of {LeakNativeMemory} and {AllocateNativeAtMost}.
    class NativeMatcher
      include BlockMatcher

      # Considers only these locations: lines of Ruby (`file:line`), and native code by its library.
      #
      # @param location [Regexp, String] a String matches a part of the path
      # @return [self]
      # @raise [ArgumentError] if it is neither, when the block runs
      #
      # @example
      #   RSpec.describe("a client") do
      #     it { expect { "a" * 100 }.not_to leak_native_memory.from(/rdkafka/) }
      #   end
      def from(location)
        @measured.from = location
        self
      end

      # Sets how often the block runs before it is measured.
      #
      # @param runs [Integer]
      # @return [self]
      # @raise [ArgumentError] if it is not a number of runs
      #
      # @example
      #   RSpec.describe("a string") do
      #     it { expect { "a" * 9 }.to allocate_native_at_most("64 KiB").warmup(2) }
      #   end
      def warmup(runs)
        @measured.warmup = runs
        self
      end

      # @return [String] the expectation in words
      def description = @measured.description

      # @return [String]
      def failure_message = @block.is_a?(Proc) ? @measured.message(negated: false) : no_block("to")

      # @return [String]
      def failure_message_when_negated
        @block.is_a?(Proc) ? @measured.message(negated: true) : no_block("not to")
      end
    end

    # See {Matchers#leak_native_memory}.
    class LeakNativeMemory < NativeMatcher
      # @param over [Integer, String] bytes that may leak
      def initialize(over)
        super()
        @measured = Testing::NativeLeaks.new(over)
      end

      # Sets how often the block runs while its live bytes are counted; the default is 20.
      #
      # @param runs [Integer] at least 4
      # @return [self]
      #
      # @example
      #   RSpec.describe("a string") { it { expect { "a" * 9 }.not_to leak_native_memory.times(10) } }
      def times(runs)
        @measured.times = runs
        self
      end

      private

      def fulfilled?(block) = @measured.found?(block)
    end

    # See {Matchers#allocate_native_at_most}.
    class AllocateNativeAtMost < NativeMatcher
      # @param limit [Integer, String] bytes
      def initialize(limit)
        super()
        @measured = Testing::NativeAllocations.new(limit)
      end

      private

      def fulfilled?(block) = @measured.within?(block)
    end
  end
end
