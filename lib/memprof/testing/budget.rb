# frozen_string_literal: true

module Memprof
  module Testing
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
  end
end
