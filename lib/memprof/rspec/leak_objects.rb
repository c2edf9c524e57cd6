# frozen_string_literal: true

module Memprof
  module RSpec
    # See {Matchers#leak_objects}.
    class LeakObjects
      include BlockMatcher

      def initialize
        @leaks = Testing::Leaks.new
      end

      # Sets how often the block runs while its live objects are counted; the default is 20.
      #
      # @param times [Integer]
      # @return [self]
      #
      # @example
      #   RSpec.describe("a string") { it { expect { :a.to_s }.not_to leak_objects.over(10).runs } }
      def over(times)
        @leaks.times = times
        self
      end

      # Does nothing; reads well after {#over}.
      #
      # @return [self]
      #
      # @example
      #   RSpec.describe("a string") { it { expect { :a.to_s }.not_to leak_objects.over(10).runs } }
      def runs = self

      # Sets how often the block runs before that; the default is 3.
      #
      # @param runs [Integer]
      # @return [self]
      # @raise [ArgumentError] if it is not a number of runs
      #
      # @example
      #   RSpec.describe("a string") { it { expect { :a.to_s }.not_to leak_objects.warmup(5) } }
      def warmup(runs)
        @leaks.warmup = Testing.check_warmup(runs)
        self
      end

      # Considers only objects of these classes, like {AmountMatcher#of}.
      #
      # @param classes [Array<Module, String>]
      # @return [self]
      # @raise [ArgumentError] if one is not a class
      #
      # @example
      #   RSpec.describe("a string") { it { expect { :a.to_s }.not_to leak_objects.of(String) } }
      def of(*classes)
        @leaks.classes |= classes
        self
      end

      # Includes the VM's own objects, like {BudgetMatcher#with_internal_objects}.
      #
      # @return [self]
      #
      # @example
      #   RSpec.describe("a string") { it { expect { :a.to_s }.not_to leak_objects.with_internal_objects } }
      def with_internal_objects
        @leaks.internals = true
        self
      end

      # @return [String] the expectation in words
      def description = @leaks.description

      # @return [String]
      def failure_message
        return no_block("to") unless @block.is_a?(Proc)

        "expected block to #{description}, but no site grew"
      end

      # @return [String] the sites that grow
      def failure_message_when_negated
        return no_block("not to") unless @block.is_a?(Proc)

        @leaks.message
      end

      private

      def fulfilled?(block) = @leaks.found?(block)
    end
  end
end
