# frozen_string_literal: true

module Memprof
  class Web
    # Two or three heaps side by side, with cached answers: heaps never change.
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
            # The question of the overview page: already answered, or reused there.
            overview = entry.answer(:overview, Pages::Overview::NUMBERS)
            { id: entry.id, name: entry.name, **overview.slice(:objects, :counts, :process) }
          end
        end
      end
    end
  end
end
