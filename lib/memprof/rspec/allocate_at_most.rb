# frozen_string_literal: true

module Memprof
  module RSpec
    # See {Matchers#allocate_at_most}.
    class AllocateAtMost < AmountMatcher
      # @param limit [Numeric, Range, Hash]
      def initialize(limit)
        super(limit, :allocated)
      end
    end
  end
end
