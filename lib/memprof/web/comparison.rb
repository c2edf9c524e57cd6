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

    # The comparisons that were asked for last: what is new and what is gone is found out once for all their
    # pages.
    class Comparisons
      MOST = 4
      private_constant :MOST

      def initialize
        @lock = Mutex.new
        @kept = {}
      end

      def of(entries)
        key = entries.map(&:id)
        @lock.synchronize do
          comparison = @kept.delete(key) || Comparison.new(entries)
          @kept.shift if @kept.size >= MOST
          @kept[key] = comparison
        end
      end

      # Lets go of a heap that is being closed.
      def forget(id) = @lock.synchronize { @kept.delete_if { |key, _| key.include?(id) } }
    end
  end
end
