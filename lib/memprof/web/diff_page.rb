# frozen_string_literal: true

module Memprof
  class Web
    # A page about two or three heaps: `a`, `b` and perhaps `c` are their numbers, in the order of time. What
    # it links to is in the second heap, unless it is gone there.
    class DiffPage < Page
      def comparison
        @comparison ||= heaps.comparisons.of(entries)
      end

      def entries
        @entries ||= %w[a b c].filter_map { |name| text(name) && heaps.fetch(text(name)) }
      end

      def subjects = entries

      def subject = %w[a b c where].to_h { |name| [name.to_sym, text(name)] }.compact

      def entry = entries[1]

      def breadcrumbs = [["Heaps", "/heaps"]]

      def assets = ["diff.css"]

      private

      # Asks the comparison a question, about what the filter chooses.
      def ask(question, **parameters)
        raise BadRequest, "a comparison needs two heaps: a=1&b=2" unless text(:a) && text(:b)

        comparison.ask(question, where: text(:where), **parameters)
      end

      def names = entries.map(&:name)
    end
  end
end
