# frozen_string_literal: true

module Memprof
  module Testing
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
