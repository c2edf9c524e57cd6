# frozen_string_literal: true

module Memprof
  module RSpec
    # Two of our matchers, joined by `and` or `or`: one run of the block serves both.
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
