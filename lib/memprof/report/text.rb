# frozen_string_literal: true

module Memprof
  class Report
    # A report for a terminal: retained objects come first, within the first five lines.
    class Text < Overview
      def initialize(report, limit:, color: false)
        super(report, limit: limit)
        @paint = Paint.new(color)
      end

      private

      def head
        facts = [self.facts, internal].compact
        "#{@paint.call(headline, :bold)}\n#{facts.map { |line| "#{@paint.call(line, :dim)}\n" }.join}"
      end

      def largest = "#{@paint.call(peak_facts, :bold)}\n#{peak.to_text(@paint)}#{notes(rest(:peak))}"

      def section(kind, table)
        return "#{@paint.call(nothing(kind), :green)}\n" if table.empty?

        shares = shares(kind).map { |by, text| format("by %-6s %s", by, text) }
        table.to_text(@paint) + notes(rest(kind), *shares)
      end

      def notes(*lines) = lines.compact.map { |line| "#{@paint.call("  #{line}", :dim)}\n" }.join
    end
  end
end
