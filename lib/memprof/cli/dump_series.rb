# frozen_string_literal: true

module Memprof
  module CLI
    # Growth of each class or line from the first dump to each other dump, counting only reachable objects:
    # uncollected garbage is not growth.
    class DumpSeries
      KEYS = %i[class type file line].freeze
      NONE = { count: 0, size: 0 }.freeze
      private_constant :KEYS, :NONE

      # The first dump has no growth.
      def initialize
        @dumps = [{}]
      end

      # Records the rows of a comparison with the first dump.
      def note(rows) = @dumps << rows.to_h { |row| [key(row), row[:reachable]] }

      # The rows, each with its `series`.
      def add_to(rows)
        rows.map { |row| row.merge(series: @dumps.map { |dump| dump.fetch(key(row), NONE) }) }
      end

      def sizes = @dumps.map { |dump| dump.each_value.sum { |change| change[:size] } }

      private

      def key(row) = row.values_at(*KEYS)
    end
  end
end
