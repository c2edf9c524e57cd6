# frozen_string_literal: true

module Memprof
  module RSpec
    # Another matcher inside of ours. RSpec nests joined block matchers: it calls the outer one with a block
    # in which the inner one runs the user's block. Allocations of the inner matcher are not the user's, so
    # the user's block is measured inside, and its exceptions propagate to the inner matcher.
    # @api private
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

    # Base class of all matchers with a limit. Subclasses define the budget.
    class BudgetMatcher
      include BlockMatcher

      def initialize
        @warmup = nil
        @compound = false
        @internals = false
      end

      # Sets how often the block runs before it is measured; the default is 1. Code that must run only once
      # needs `warmup(0)`.
      #
      # @param runs [Integer]
      # @return [self]
      # @raise [ArgumentError] if it is not a number of runs
      #
      # @example
      #   RSpec.describe "a queue" do
      #     it "gives what it has" do
      #       queue = Queue.new
      #       queue << 1
      #       expect { queue.pop }.to allocate_at_most(0).warmup(0)
      #     end
      #   end
      def warmup(runs)
        @warmup = Testing.check_warmup(runs)
        self
      end

      # Counts the VM's own objects too: instruction sequences, call caches, method entries.
      #
      # @return [self]
      #
      # @example
      #   RSpec.describe "eval" do
      #     it "makes instruction sequences" do
      #       expect { eval("1 + 1") }.not_to allocate_at_most(0).with_internal_objects
      #     end
      #   end
      def with_internal_objects
        @internals = true
        self
      end

      # @api private
      def matches?(block)
        @outcome = nil
        return false unless block.is_a?(Proc)

        judge(measure(block)).pass?
      end

      # @api private
      def does_not_match?(block)
        matches = matches?(block)
        !@outcome.nil? && !matches
      end

      # Judges a run that may have been measured for several matchers.
      #
      # @api private
      def judge(measurement)
        @outcome = @planned.judge(measurement)
      end

      # @api private
      def plan
        # Also judges: only its own filters have seen the anonymous classes.
        @planned = budget
        @planned.plan(@warmup || (@compound ? 0 : Testing::WARMUP))
      end

      # If joined with one of our matchers, one run serves both; if joined with any other, that one wraps
      # ours, and the block must run only once, or `change { }.by(1)` would see the warm-up.
      #
      # @api private
      def and(matcher)
        join(:and, matcher) || super
      end
      alias_method :&, :and

      # @api private
      def or(matcher)
        join(:or, matcher) || super
      end
      alias_method :|, :or

      # RSpec calls this only when it joins matchers, which means that the block must run once. It nests a
      # matcher that returns true inside the other one, and refuses two of these. This returns false, so that
      # a matcher which rescues or catches (`raise_error`, `throw_symbol`) can be nested inside; {Nesting}
      # ensures that its work does not count.
      #
      # @api private
      def expects_call_stack_jump?
        @compound = true
        false
      end

      # @return [String] the expectation in words
      def description = budget.to_s

      # @return [String] expected, actual and the sites
      def failure_message
        return no_block("to") unless @outcome

        @outcome.message(description: description)
      end

      # @return [String] expected, actual and the sites
      def failure_message_when_negated
        return no_block("not to") unless @outcome

        @outcome.message(negated: true, description: description)
      end

      private

      def join(word, matcher)
        return Joined.new(word, self, matcher) if matcher.is_a?(BudgetMatcher)

        @compound = true
        nil
      end

      def measure(block)
        nesting = Nesting.of(block)
        return Testing::Measurement.new(block, plan) unless nesting

        Testing::Measurement.new(nesting.block, plan) { |work| nesting.call(work) }
      end
    end

    # Two of our matchers, joined by `and` or `or`: one run of the block serves both.
    # @api private
    class Joined < BudgetMatcher
      def initialize(word, first, second)
        super()
        @word = word
        @matchers = [first, second]
      end

      def warmup(runs)
        @matchers.each { |matcher| matcher.warmup(runs) }
        self
      end

      def with_internal_objects
        @matchers.each(&:with_internal_objects)
        self
      end

      def judge(measurement)
        @outcomes = @matchers.map { |matcher| matcher.judge(measurement) }
        @outcome = self
      end

      def pass?
        @word == :and ? @outcomes.all?(&:pass?) : @outcomes.any?(&:pass?)
      end

      def plan = @matchers.map(&:plan).reduce(:|)

      def expects_call_stack_jump?
        @matchers.each(&:expects_call_stack_jump?)
        false
      end

      # RSpec does not negate joined matchers either: the meaning would be unclear.
      def does_not_match?(_block)
        raise NotImplementedError, "`expect { }.not_to matcher.#{@word} matcher` is not supported"
      end

      def description = @matchers.map(&:description).join(" #{@word} ")

      def failure_message
        return super unless @outcome

        failed = @matchers.zip(@outcomes).reject { |_, outcome| outcome.pass? }
        failed.map { |matcher, _| matcher.failure_message }.join("\n\n...#{@word}:\n\n")
      end
    end
  end
end
