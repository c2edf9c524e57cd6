# frozen_string_literal: true

module Memprof
  module RSpec
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
