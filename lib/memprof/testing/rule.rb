# frozen_string_literal: true

module Memprof
  module Testing
    # One sentence of a budget: "allocate at most 2 objects of String".
    class Rule
      # The result of a rule: the amount, and the sites that add up to it.
      Verdict = Struct.new(:rule, :actual, :rows) do
        def pass? = rule.limit.allow?(actual)

        def to_s = "#{actual} #{rule.noun(actual == 1)}"
      end

      attr_reader :kind, :unit, :limit, :filter

      def initialize(kind, unit, limit, keys: nil, filter: ClassFilter.new(keys || []), internals: false)
        @kind = kind
        @unit = unit
        @limit = Limit.new(limit)
        @keys = keys
        @filter = filter
        @internals = internals
      end

      def judge(measurement)
        rows = measurement.public_send(kind).select { |row| counts?(row) }
        Verdict.new(self, rows.sum(&unit), rows)
      end

      def to_s(verb: { allocated: "allocate ", retained: "retain " }.fetch(kind))
        "#{verb}#{limit} #{noun(limit.one?)}"
      end

      def noun(singular)
        word = singular ? unit.to_s.chomp("s") : unit.to_s
        @keys ? "#{word} of #{@keys.map { |key| ClassFilter.name_of(key) }.join(" or ")}" : word
      end

      private

      def counts?(row)
        return @internals || !row.internal? unless @keys

        @keys.include?(@filter.key_of(row))
      end
    end
  end
end
