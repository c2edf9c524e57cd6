# frozen_string_literal: true

require_relative "cell"
require_relative "columns"
require_relative "paint"
require_relative "printable"
require_relative "screen_width"

module Memprof
  # Rows under headings, printed as aligned text or as a Markdown table.
  class Table
    # A column: its heading, whether its cells are numbers (right-aligned), and the style of its cells.
    Column = Struct.new(:heading, :number, :style, keyword_init: true)
    # A row: its cells, and lines that explain it (printed under its last cell, as text only).
    Row = Struct.new(:cells, :notes)
    private_constant :Column, :Row

    GAP = "  "
    private_constant :GAP

    def initialize
      @columns = []
      @rows = []
    end

    # Adds columns of the table of columns.
    def columns(*keys, style: nil)
      keys.each do |key|
        known = Columns.fetch(key)
        Cell.number?(known.kind) ? number(known.heading, style: style) : name(known.heading, style: style)
      end
      self
    end

    # Adds a column whose heading is not in that table.
    def number(heading, style: nil)
      @columns << Column.new(heading: heading, number: true, style: style)
      self
    end

    def name(heading, style: nil)
      @columns << Column.new(heading: heading, number: false, style: style)
      self
    end

    def row(*cells, notes: [])
      @rows << Row.new(cells.map { |cell| Printable.line(cell) }, notes.map { |note| Printable.line(note) })
      self
    end

    def empty? = @rows.empty?

    def to_text(paint = Paint.new)
      widths = @columns.each_index.map { |index| width(index) }
      indent = " " * (widths[0..-2].sum { |width| width + GAP.size } + 2)
      lines = [paint.call(text_line(@columns.map(&:heading), widths), :bold)]
      @rows.each do |row|
        lines << text_line(row.cells, widths, paint)
        row.notes.each { |note| lines << paint.call("#{indent}#{note}", :dim) }
      end
      lines.map { |line| "#{line}\n" }.join
    end

    # A table in GitHub's Markdown; names are formatted as code.
    def to_markdown
      lines = [@columns.map(&:heading), @columns.map { |column| column.number ? "---:" : "---" }]
      @rows.each do |row|
        lines << row.cells.zip(@columns).map do |cell, column|
          (column.number ? cell : Table.code(cell)).gsub("|", "\\|")
        end
      end
      lines.map { |cells| "| #{cells.join(" | ")} |\n" }.join
    end

    # The text as inline code.
    def self.code(text)
      return "" if text.empty?

      return "`#{text}`" unless text.include?("`")

      fence = "`" * (text.scan(/`+/).map(&:size).max + 1)
      "#{fence} #{text} #{fence}"
    end

    private

    def width(index)
      [@columns[index].heading, *@rows.map { |row| row.cells[index] }].map { |text| ScreenWidth.of(text) }.max
    end

    def text_line(cells, widths, paint = nil)
      last = cells.size - 1
      cells.each_with_index.map do |cell, index|
        column = @columns[index]
        if column.number then cell = ScreenWidth.right(cell, widths[index])
        elsif index < last then cell = ScreenWidth.left(cell, widths[index])
        end
        paint && !cell.strip.empty? ? paint.call(cell, column.style) : cell
      end.join(GAP).rstrip
    end
  end
end
