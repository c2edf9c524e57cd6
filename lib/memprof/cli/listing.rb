# frozen_string_literal: true

require_relative "../paint"
require_relative "../printable"
require_relative "../screen_width"
require_relative "../table"
require_relative "../cell"
require_relative "../columns"
require_relative "../csv_text"

module Memprof
  module CLI
    # Rows of an answer under headings: as aligned text that fits a screen, as Markdown, or as CSV with exact
    # numbers.
    class Listing
      # A column: its heading, the kind of its values (see Cell), its name in CSV, a proc that takes its value
      # from an item, whether a narrow screen may omit it, and its maximum width.
      Column = Struct.new(:heading, :kind, :key, :value, :spare, :most)
      # A row: its values, and its depth in a tree.
      Row = Struct.new(:cells, :depth)
      private_constant :Column, :Row

      GAP = 2
      READABLE = 28 # minimum width of a column with truncated texts
      NARROWEST = 14
      INDENT = 2
      private_constant :GAP, :READABLE, :NARROWEST, :INDENT

      def initialize
        @columns = []
        @rows = []
      end

      # Adds columns of the table. `as` is the name in the answer and in CSV, if that is not the key.
      def columns(*keys, as: nil, kind: nil, **options, &value)
        keys.each do |key|
          known = Columns.fetch(key)
          column(known.heading, kind || known.kind, as || key, **options, &value)
        end
        self
      end

      # Adds a column whose heading the answer decides. It shows the block's value for an item, or else the
      # item's value under `from`.
      def column(heading, kind, key, from: key, spare: false, most: nil, &value)
        value ||= ->(item) { item[from] }
        @columns << Column.new(heading, kind, key.to_s, value, spare, most)
        self
      end

      # Adds a row for each item, once all columns are added.
      def rows(items)
        items.each { |item| item(item) }
        self
      end

      def item(item, depth: 0) = row(*@columns.map { |column| column.value.call(item) }, depth: depth)

      def row(*values, depth: 0)
        @rows << Row.new(values, depth)
        self
      end

      def empty? = @rows.empty?

      # Aligned columns, without those that are nil in every row.
      def to_text(paint = Paint.new, width = nil) = fitting(width).to_text(paint)

      def to_markdown = table(visible, {}).to_markdown

      def to_csv
        lines = [@columns.map(&:key)]
        lines += @rows.map do |row|
          row.cells.zip(@columns).map { |value, column| Cell.exact(value, column.kind) }
        end
        CsvText.of(lines)
      end

      private

      def visible = @columns.each_index.select { |index| @rows.any? { |row| !row.cells[index].nil? } }

      # Truncates wide columns as long as they are readable; then omits columns, the last first; then
      # truncates further.
      def fitting(width)
        shown = visible
        loop do
          widths = natural(shown)
          return table(shown, widths) if width.nil? || room(widths) <= width
          return table(shown, narrowed(widths, width, READABLE)) if room(least(widths, READABLE)) <= width

          spare = shown.reverse.find { |index| @columns[index].spare }
          return table(shown, narrowed(widths, width, NARROWEST)) unless spare

          shown -= [spare]
        end
      end

      def room(widths) = widths.values.sum + (GAP * (widths.size - 1))

      def natural(shown)
        shown.to_h do |index|
          widest = [@columns[index].heading, *texts(index)].map { |text| ScreenWidth.of(text) }.max
          [index, [widest, @columns[index].most].compact.min]
        end
      end

      def texts(index)
        @texts ||= {}
        @texts[index] ||= @rows.map do |row|
          text = Printable.line(Cell.text(row.cells[index], @columns[index].kind))
          indented?(index) ? (" " * (INDENT * row.depth)) + text : text
        end
      end

      # The tree is indented in the first column of names.
      def indented?(index)
        @indented ||= @columns.index { |column| Cell.cut?(column.kind) }
        index == @indented
      end

      def least(widths, narrowest)
        widths.to_h do |index, width|
          column = @columns[index]
          cut = [[width, narrowest].min, column.heading.length].max
          [index, Cell.cut?(column.kind) ? cut : width]
        end
      end

      # Shrinks the widest columns first.
      def narrowed(widths, width, narrowest)
        widths = widths.dup
        least = least(widths, narrowest)
        while room(widths) > width
          index = widths.keys.select { |key| widths[key] > least[key] }.max_by { |key| widths[key] }
          break unless index

          widths[index] -= 1
        end
        widths
      end

      def table(shown, widths)
        table = Table.new
        shown.each do |index|
          column = @columns[index]
          style = Cell.style(column.kind)
          table.public_send(Cell.number?(column.kind) ? :number : :name, column.heading, style: style)
        end
        @rows.each_with_index do |row, number|
          table.row(*shown.map { |index| cell(index, number, row.depth, widths[index]) })
        end
        table
      end

      def cell(index, number, depth, width)
        text = texts(index)[number]
        return text if width.nil? || ScreenWidth.of(text) <= width || !Cell.cut?(@columns[index].kind)

        # A deep tree would be all margin.
        margin = indented?(index) ? [INDENT * depth, width - NARROWEST].min.clamp(0, width) : 0
        (" " * margin) + Cell.cut(text.lstrip, width - margin, @columns[index].kind)
      end
    end
  end
end
