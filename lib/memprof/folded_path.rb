# frozen_string_literal: true

module Memprof
  # The steps of a path for people: of many equal ones in a row, as in a linked list, only the first and the
  # last.
  module FoldedPath
    # Maximum length of a run that is shown in full by default.
    RUN = 4
    # Steps of these types have their own descriptive names.
    NAMED = %w[class module iclass root].freeze
    private_constant :NAMED

    class << self
      # Steps, with hashes between them that have the number of omitted ones (`:omitted`), and the step that
      # they are equal to (`:like`) if known.
      def of(path, run: RUN) = folded(with_gap(path).chunk_while { |one, other| alike?(one, other) }, run)

      private

      def folded(runs, most)
        runs.flat_map do |run|
          next run if run.size <= most

          left_out = run.sum { |step| step[:omitted] || 1 } - 2
          known = run.none? { |step| step[:omitted] }
          [run.first, { omitted: left_out, like: known ? run.first : nil }, run.last]
        end
      end

      # The answer lacks the middle of a very long path.
      def with_gap(path)
        steps = path[:steps]
        omitted = path[:omitted].to_i
        return steps unless omitted.positive?

        middle = steps.size / 2
        before = key(steps[middle - 1])
        gap = { omitted: omitted, between: (before if before == key(steps[middle])) }
        [*steps.take(middle), gap, *steps.drop(middle)]
      end

      def alike?(one, other)
        key = one.fetch(:between) { key(one) }
        key && key == other.fetch(:between) { key(other) }
      end

      # Elements differ only in their index or key.
      def key(step)
        return if NAMED.include?(step[:type])

        [step[:label]&.sub(/\A\[.*\z/m, "[]"), step[:class], step[:type]]
      end
    end
  end
end
