# frozen_string_literal: true

module Memprof
  module RSpec
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
  end
end
