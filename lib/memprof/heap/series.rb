# frozen_string_literal: true

module Memprof
  class Heap
    # Growth of each class or line from the first heap to each other one, counting only reachable objects:
    # uncollected garbage is not growth.
    #
    # @api private
    class Series
      KEYS = %i[class type file line].freeze
      NONE = { count: 0, size: 0 }.freeze
      private_constant :KEYS, :NONE

      # `question` are the parameters of the rows. The first heap has no growth.
      def initialize(**question)
        @question = question
        @heaps = [{}]
      end

      # Adds a heap by its diff from the first one.
      def add(diff)
        @heaps << diff.ask(:rows, **@question)[:rows].to_h { |row| [key(row), row[:reachable]] }
      end

      # The rows, each with its `series`.
      def complete(rows)
        rows.map { |row| row.merge(series: @heaps.map { |heap| heap.fetch(key(row), NONE) }) }
      end

      def sizes = @heaps.map { |heap| heap.each_value.sum { |change| change[:size] } }

      private

      def key(row) = row.values_at(*KEYS)
    end
  end
end
