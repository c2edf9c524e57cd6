# frozen_string_literal: true

module Memprof
  module RSpec
    # See {Matchers#perform_allocation}.
    class PerformAllocation < AmountMatcher
      # @param limit [Numeric, Range, Hash]
      def initialize(limit)
        @retained = nil
        super(limit, :allocated)
      end

      # Also limits retained objects, in the unit of the allocations.
      #
      # @param limit [Numeric, Range, Hash]
      # @return [self]
      # @raise [ArgumentError] if the limit is invalid
      #
      # @example
      #   RSpec.describe("an array") { it { expect { [] }.to perform_allocation(1).and_retain(0) } }
      def and_retain(limit)
        @retained = limit
        budget
        self
      end

      private

      def budget
        limits = { allocated: @limit, retained: @retained }.compact
        rules = limits.flat_map do |kind, limit|
          next [Testing::Rule.new(kind, @unit, limit, keys: @classes)] if @classes.any?

          Testing::Budget.read(limit, kind: kind, unit: @unit, exact: true, internals: @internals).rules
        end
        Testing::Budget.new(rules)
      end
    end
  end
end
