# frozen_string_literal: true

module Memprof
  module RSpec
    # See {Matchers#limit_allocations}.
    class LimitAllocations < BudgetMatcher
      # @param limits [Hash]
      # @raise [ArgumentError] if a limit is invalid
      def initialize(limits)
        super()
        @limits = limits
        budget if limits.any?
      end

      # Adds the limits of one class.
      #
      # @param klass [Module, String]
      # @param count [Numeric, Range, nil] objects
      # @param size [Numeric, Range, nil] bytes, including slots
      # @return [self]
      # @raise [ArgumentError] if a limit is missing
      #
      # @example
      #   RSpec.describe "a string" do
      #     it { expect { :a.to_s }.to limit_allocations.of(String, count: 1, size: 40) }
      #   end
      def of(klass, count: nil, size: nil)
        @limits = @limits.merge(klass => { count: count, size: size }.compact)
        budget
        self
      end

      private

      def budget = Testing::Budget.read(@limits, kind: :allocated, strict: true, internals: @internals)
    end
  end
end
