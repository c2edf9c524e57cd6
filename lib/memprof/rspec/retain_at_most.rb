# frozen_string_literal: true

module Memprof
  module RSpec
    # See {Matchers#retain_at_most}.
    class RetainAtMost < AmountMatcher
      # @param limit [Numeric, Range, Hash]
      def initialize(limit)
        super(limit, :retained)
      end
    end
  end
end
