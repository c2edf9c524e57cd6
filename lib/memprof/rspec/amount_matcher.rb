# frozen_string_literal: true

module Memprof
  module RSpec
    # A limit for objects or bytes, of all or some classes.
    class AmountMatcher < BudgetMatcher
      # @param limit [Numeric, Range, Hash]
      # @param kind [Symbol] `:allocated` or `:retained`
      # @raise [ArgumentError] if the limit is invalid
      def initialize(limit, kind)
        super()
        @limit = limit
        @kind = kind
        @unit = :objects
        @classes = []
        budget
      end

      # Counts objects; the default.
      #
      # @return [self]
      #
      # @example
      #   RSpec.describe("an array") { it { expect { [] }.to allocate_at_most(1).objects } }
      def objects
        @unit = :objects
        self
      end
      alias_method :object, :objects

      # Counts bytes. For allocations, GC is disabled while the block runs, so that they are exact.
      #
      # @return [self]
      #
      # @example
      #   RSpec.describe("a string") { it { expect { "ab" * 500 }.to allocate_at_most(2048).bytes } }
      def bytes
        @unit = :bytes
        self
      end
      alias_method :byte, :bytes
      alias_method :memory, :bytes

      # Counts only objects of these classes, their subclasses, and classes that include these modules. A
      # String is the name of one class.
      #
      # @param classes [Array<Module, String>]
      # @return [self]
      # @raise [ArgumentError] if one is not a class, or the limits are already by class
      #
      # @example
      #   RSpec.describe("a pair") { it { expect { [:a.to_s, []] }.to allocate_at_most(2).of(Array) } }
      def of(*classes)
        raise ArgumentError, "the limits are by class already: #{@limit.inspect}" if @limit.is_a?(Hash)

        @classes |= classes
        budget
        self
      end

      private

      def budget
        return Testing::Budget.new([Testing::Rule.new(@kind, @unit, @limit, keys: @classes)]) if @classes.any?

        Testing::Budget.read(@limit, kind: @kind, unit: @unit, internals: @internals)
      end
    end

    # See {Matchers#allocate_at_most}.
    class AllocateAtMost < AmountMatcher
      # @param limit [Numeric, Range, Hash]
      def initialize(limit)
        super(limit, :allocated)
      end
    end

    # See {Matchers#retain_at_most}.
    class RetainAtMost < AmountMatcher
      # @param limit [Numeric, Range, Hash]
      def initialize(limit)
        super(limit, :retained)
      end
    end
  end
end
