# frozen_string_literal: true

module Memprof
  module Testing
    # One sentence of a budget: "allocate at most 2 objects of String".
    #
    # @api private
    class Rule
      # What a rule found: the amount, and the sites that it adds up from.
      Verdict = Struct.new(:rule, :actual, :rows) do
        # @return [Boolean]
        def pass?
          rule.limit.allow?(actual)
        end

        # @return [String] "12 objects of String"
        def to_s
          "#{actual} #{rule.noun(actual == 1)}"
        end
      end

      # @return [Symbol] `:allocated` or `:retained`
      attr_reader :kind

      # @return [Symbol] `:objects` or `:bytes`
      attr_reader :unit

      # @return [Limit]
      attr_reader :limit

      # @param kind [Symbol]
      # @param unit [Symbol]
      # @param limit [Numeric, Range]
      # @param keys [Array<Module, String>, nil] classes whose objects count, nil for all
      # @param filter [ClassFilter] shares objects out among these and other rules' keys
      # @param internals [Boolean] true: without keys, the VM's own objects count too
      def initialize(kind, unit, limit, keys: nil, filter: ClassFilter.new(keys || []), internals: false)
        @kind = kind
        @unit = unit
        @limit = Limit.new(limit)
        @keys = keys
        @filter = filter
        @internals = internals
      end

      # @param measurement [Measurement]
      # @return [Verdict]
      def judge(measurement)
        rows = measurement.public_send(kind).select { |row| counts?(row) }
        Verdict.new(self, rows.sum(&unit), rows)
      end

      # @return [String] "allocate at most 2 objects of String", or without a verb
      def to_s(verb: { allocated: "allocate ", retained: "retain " }.fetch(kind))
        "#{verb}#{limit} #{noun(limit.one?)}"
      end

      # @return [String] "objects of String"
      def noun(singular)
        word = singular ? unit.to_s.chomp("s") : unit.to_s
        @keys ? "#{word} of #{@keys.map { |key| ClassFilter.name_of(key) }.join(" or ")}" : word
      end

      private

      def counts?(row)
        return @internals || !row.internal? unless @keys

        @keys.include?(@filter.key_for(row.class_name))
      end
    end
  end
end
