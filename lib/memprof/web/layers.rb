# frozen_string_literal: true

module Memprof
  class Web
    # Layout of a drawn graph: a column for each level, an object's referrers at its left and its references
    # at its right. Nodes are ordered by their neighbors nearer to the middle, so few lines cross.
    class Layers
      WIDTH = 164
      HEIGHT = 35
      ACROSS = 94 # between columns
      DOWN = 12 # between nodes
      MARGIN = 16

      attr_reader :width, :height

      def initialize(nodes, edges)
        @columns = nodes.group_by { |node| node[:level] }.transform_values { |column|
          column.map { |node|
            node[:id]
          }
        }
        @beside = Hash.new { |beside, id| beside[id] = [] }
        edges.each do |edge|
          @beside[edge[:from]] << edge[:to]
          @beside[edge[:to]] << edge[:from]
        end
        @levels = nodes.to_h { |node| [node[:id], node[:level]] }
        lay_out
      end

      def [](id) = @places.fetch(id)

      def line(edge)
        left, from = self[edge[:from]]
        right, to = self[edge[:to]]
        from += HEIGHT / 2
        to += HEIGHT / 2
        return round(left, from, right, to) unless right > left

        x = left + WIDTH
        bend = [(right - x) / 2, 24].max
        "M#{x} #{from}C#{x + bend} #{from} #{right - bend} #{to} #{right} #{to}"
      end

      private

      def lay_out
        @order = {}
        @columns.keys.sort_by(&:abs).each { |level| @columns[level] = ordered(level) }
        tallest = @columns.each_value.map(&:size).max
        @height = tallest * (HEIGHT + DOWN) - DOWN + 2 * MARGIN
        @width = @columns.size * (WIDTH + ACROSS) - ACROSS + 2 * MARGIN
        @places = {}
        @columns.keys.sort.each_with_index { |level, index| place(@columns[level], index) }
      end

      # Sorts by the mean position of the neighbors nearer to the middle.
      def ordered(level)
        column = @columns[level].each_with_index.sort_by do |id, index|
          nearer = @beside[id].select { |other| @levels[other].abs < level.abs && @order.key?(other) }
          places = nearer.map { |other| @order[other] }
          [places.empty? ? 1.0 : places.sum / places.size, index]
        end
        column = column.map(&:first)
        column.each_with_index { |id, index| @order[id] = (index + 0.5) / column.size }
        column
      end

      def place(column, index)
        x = MARGIN + index * (WIDTH + ACROSS)
        y = (@height - column.size * (HEIGHT + DOWN) + DOWN) / 2
        column.each_with_index { |id, row| @places[id] = [x, y + row * (HEIGHT + DOWN)] }
      end

      # Back, or to the same column: out at the right, in at the right.
      def round(left, from, right, to)
        start = left + WIDTH
        finish = right + WIDTH
        out = [start, finish].max + 34
        "M#{start} #{from}C#{out} #{from} #{out} #{to} #{finish} #{to}"
      end
    end
  end
end
