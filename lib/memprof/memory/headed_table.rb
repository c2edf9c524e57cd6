# frozen_string_literal: true

require_relative "../paint"
require_relative "../units"

module Memprof
  class Memory
    # The structure of a text about memory: its `heading`, its `table`, and its `sentences`, a line each.
    module HeadedTable
      def to_s(color: false)
        paint = Paint.new(color)
        rest = sentences.map { |line| "#{line}\n" }.join
        "#{paint.call(heading, :bold)}\n\n#{table.to_text(paint)}\n#{rest}"
      end

      private

      def bytes(bytes) = Units.bytes(bytes)
    end
  end
end
