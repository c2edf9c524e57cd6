# frozen_string_literal: true

module Memprof
  module RSpec
    # Another matcher inside of ours. RSpec nests joined block matchers: it calls the outer one with a block
    # in which the inner one runs the user's block. Allocations of the inner matcher are not the user's, so
    # the user's block is measured inside, and its exceptions propagate to the inner matcher.
    class Nesting
      def self.of(block)
        evaluator = block.binding.receiver
        new(block, evaluator) if ::RSpec::Matchers::BuiltIn::Compound::NestedEvaluator === evaluator &&
          evaluator.instance_variable_get(:@actual).is_a?(Proc)
      rescue ArgumentError
        nil # a Symbol or a Method as a block has no binding
      end

      attr_reader :block

      def initialize(outer, evaluator)
        @outer = outer
        @evaluator = evaluator
        @block = evaluator.instance_variable_get(:@actual)
      end

      # Runs the inner matcher, with another block in place of the user's.
      def call(work)
        @evaluator.instance_variable_set(:@actual, work)
        @outer.call
      ensure
        @evaluator.instance_variable_set(:@actual, @block)
      end
    end
  end
end
