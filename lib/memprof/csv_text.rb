# frozen_string_literal: true

require_relative "printable"

module Memprof
  # Rows as CSV (RFC 4180). Numbers stay numbers; a text that a spreadsheet would execute gets an apostrophe
  # in front, as OWASP recommends: names come from the measured program.
  module CsvText
    # Beginnings of formulas. Spreadsheets skip blanks, and read full-width signs as the usual ones.
    FORMULA = /\A(?:\s*[=+\-@\uFF1D\uFF0B\uFF0D\uFF20]|[\t\r])/
    SPECIAL = /[",\r\n]/
    private_constant :FORMULA, :SPECIAL

    class << self
      def of(rows) = rows.map { |cells| line(cells) }.join

      def line(cells) = "#{cells.map { |cell| cell(cell) }.join(",")}\n"

      private

      def cell(value)
        return value.to_s if value.is_a?(Numeric)

        text = Printable.utf8(value)
        formula = text.match?(FORMULA)
        text = "'#{text}" if formula
        formula || text.match?(SPECIAL) ? %("#{text.gsub('"', '""')}") : text
      end
    end
  end
end
