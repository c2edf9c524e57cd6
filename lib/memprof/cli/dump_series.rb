# frozen_string_literal: true

module Memprof
  module CLI
    # How much more of each class or line there is in each dump than in the first one, counting what roots
    # reach: garbage that was not collected yet is no growth.
    class DumpSeries
      KEYS = %i[class type file line].freeze
      NONE = { count: 0, size: 0 }.freeze
      private_constant :KEYS, :NONE

      # The first dump has nothing more than itself.
      def initialize
        @dumps = [{}]
      end

      # Notes the rows of a comparison with the first dump.
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
