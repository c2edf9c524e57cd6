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

    # Rules that a run of a block must satisfy.
    class Budget
      # Keys for the totals of all classes in a Hash of limits, and for those of one class in its own Hash.
      UNITS = { count: :objects, size: :bytes }.freeze

      def self.read(limits, kind:, unit: :objects, strict: false, exact: false, internals: false)
        return new([Rule.new(kind, unit, limits, internals: internals)]) unless limits.is_a?(Hash)
        raise ArgumentError, "no limit given" if limits.empty?

        classes = limits.keys - UNITS.keys
        filter = ClassFilter.new(classes, exact: exact)
        rules = limits.flat_map do |key, value|
          next [Rule.new(kind, UNITS.fetch(key), value, internals: internals)] if UNITS.key?(key)

          by_unit(value, unit).map { |of, limit| Rule.new(kind, of, limit, keys: [key], filter: filter) }
        end
        new(rules, rest: strict && classes.size == limits.size ? [kind, filter] : nil)
      end

      def self.by_unit(value, unit)
        return { unit => value } unless value.is_a?(Hash)

        unknown = value.keys - UNITS.keys
        return value.transform_keys(UNITS) if unknown.empty? && value.any?

        raise ArgumentError, "#{value.inspect} is not a limit: a Hash has the keys count and size"
      end
      private_class_method :by_unit

      attr_reader :rules

      def initialize(rules, rest: nil)
        @rules = rules
        @rest = rest
      end

      def plan(warmup)
        bytes = @rules.any? { |rule| rule.kind == :allocated && rule.unit == :bytes }
        filters = [*@rules.map(&:filter), *@rest&.last].uniq
        Measurement::Plan.new(warmup, bytes, @rules.any? { |rule| rule.kind == :retained }, filters)
      end

      def judge(measurement)
        verdicts = @rules.map { |rule| rule.judge(measurement) }
        Outcome.new(self, verdicts, @rest ? unlisted(measurement) : [])
      end

      def to_s
        sentences = @rules.group_by(&:kind).map do |_, rules|
          [rules.first.to_s, *rules.drop(1).map { |rule| rule.to_s(verb: "") }].join(" and ")
        end
        sentences.join(" and ")
      end

      private

      def unlisted(measurement)
        kind, filter = @rest
        measurement.public_send(kind).reject { |row| row.internal? || filter.key_of(row) }
      end
    end

    # The result of judging a run by its budget, and its message.
    class Outcome
      def initialize(budget, verdicts, unlisted)
        @budget = budget
        @verdicts = verdicts
        @unlisted = unlisted
      end

      def pass? = @verdicts.all?(&:pass?) && @unlisted.empty?

      def message(negated: false, description: @budget.to_s)
        "expected block #{"not " if negated}to #{description}, but it #{actual}\n#{tables(negated)}".chomp
      end

      def actual
        parts = @verdicts.group_by { |verdict| verdict.rule.kind }.map do |kind, verdicts|
          "#{kind} #{verdicts.join(" and ")}"
        end
        parts << "allocated #{@unlisted.sum(&:objects)} of classes that have no limit" if @unlisted.any?
        parts.join(" and ")
      end

      private

      def tables(negated)
        shown = negated ? @verdicts : @verdicts.reject(&:pass?)
        groups = shown.group_by { |verdict| verdict.rule.kind }
        groups.transform_values! { |verdicts| verdicts.flat_map(&:rows).uniq }
        groups[:allocated] = (groups[:allocated] || []) | @unlisted if @unlisted.any?
        by_bytes = shown.any? && shown.all? { |verdict| verdict.rule.unit == :bytes }
        groups.values.map { |rows| SiteTable.of_rows(rows, by_bytes ? :bytes : :objects) }.join
      end
    end
  end
end
