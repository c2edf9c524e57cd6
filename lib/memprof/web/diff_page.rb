# frozen_string_literal: true

module Memprof
  class Web
    # A page about two or three heaps: `a`, `b` and perhaps `c` are their numbers, in the order of time. What
    # it links to is in the second heap, unless it is gone there.
    #
    # @abstract
    # @api private
    class DiffPage < Page
      # @return [Comparison]
      # @raise [NotFound] if there is no such heap
      # @raise [BadRequest] if a heap is not named
      # @raise [Opening] if one is not open yet
      def comparison
        @comparison ||= heaps.comparisons.of(entries)
      end

      # @return [Array<Heaps::Entry>] that are compared
      def entries
        @entries ||= %w[a b c].filter_map { |name| text(name) && heaps.fetch(text(name)) }
      end

      # @return [Array<Heaps::Entry>]
      def subjects = entries

      # @return [Array<Symbol>] the parameters that say what is compared
      def subject
        %w[a b c where].to_h { |name| [name.to_sym, text(name)] }.compact
      end

      # @return [Heaps::Entry, nil] the heap after: what the page links to is there
      def entry = entries[1]

      # @return [Array<Array(String, String)>]
      def breadcrumbs = [["Heaps", "/heaps"]]

      # @return [Array<String>]
      def styles = ["diff.css"]

      private

      # Puts a question to the comparison, about what the filter chooses.
      def ask(question, **parameters)
        raise BadRequest, "two heaps are needed: a=1&b=2" unless text(:a) && text(:b)

        comparison.ask(question, where: text(:where), **parameters)
      end

      def names
        entries.map(&:name)
      end
    end
  end
end
