# frozen_string_literal: true

require_relative "frames"

module Memprof
  class Web
    # Two or three heaps side by side, with cached answers: heaps never change.
    class Comparison
      FRAMES = 200_000 # of one heap
      private_constant :FRAMES

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

      # Retained memory of the first heap and the last as a flame graph of both, with all frames: which of
      # two heaps has a narrow frame, merged ones would hide.
      def flame
        @lock.synchronize do
          @flame ||= Frames.difference(*@entries.values_at(0, -1).map { |entry|
            entry.answer(:flame, limit: FRAMES)
          })
        end
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
