# frozen_string_literal: true

module Memprof
  class Web
    # Two heaps side by side, or three, and what was asked of them already: heaps never change.
    class Comparison
      attr_reader :entries

      def initialize(entries)
        @entries = entries
        entries.each(&:prepare)
        before, *after = entries.map(&:heap)
        @diff = before.diff(*after)
        @lock = Mutex.new
      end

      def three? = @entries.size == 3

      def ask(question, **parameters)
        @diff.ask(question, **parameters)
      rescue ArgumentError => e
        raise BadRequest, e.message
      end

      def heaps
        @lock.synchronize do
          @overviews ||= @entries.map do |entry|
            # The same question as that page asks: it is answered already, or will be.
            overview = entry.answer(:overview, Pages::Overview::NUMBERS)
            { id: entry.id, name: entry.name, **overview.slice(:objects, :counts, :process) }
          end
        end
      end
    end
  end
end
