# frozen_string_literal: true

module Memprof
  module RSpec
    # Shared by all matchers here, which require a block. `fulfilled?` runs it.
    module BlockMatcher
      include ::RSpec::Matchers::Composable

      # @api private
      def supports_block_expectations? = true

      # @api private
      def supports_value_expectations? = false

      # @api private
      def matches?(block)
        @block = block
        block.is_a?(Proc) && fulfilled?(block)
      end

      # @api private
      def does_not_match?(block)
        @block = block
        block.is_a?(Proc) && !fulfilled?(block)
      end

      private

      # The failure of `expect(value)`, for which RSpec only warns.
      def no_block(to) = "expected a block #{to} #{description}, but got none"
    end
  end
end
