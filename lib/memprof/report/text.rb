# frozen_string_literal: true

require_relative "../paint"

module Memprof
  class Report
    # A report for a terminal: retained objects are on top, within the first five lines.
    class Text
      def initialize(report, limit:, color: false)
        @overview = Overview.new(report, limit: limit)
        @empty = report.total_allocated.zero?
        @paint = Paint.new(color)
      end

      def to_s
        facts = [@overview.facts, @overview.internal].compact
        head = "#{@paint.call(@overview.headline, :bold)}\n"
        head += facts.map { |line| "#{@paint.call(line, :dim)}\n" }.join
        return head if @empty

        tables = { retained: @overview.retained, allocated: @overview.allocated }
        [head, *peak, *tables.map { |kind, table| section(kind, table) }].join("\n")
      end

      private

      def peak
        facts = @overview.peak_facts
        return unless facts

        ["#{@paint.call(facts, :bold)}\n#{@overview.peak.to_text(@paint)}#{rest(:peak)}"]
      end

      def rest(kind)
        text = @overview.rest(kind)
        text ? "#{@paint.call("  #{text}", :dim)}\n" : ""
      end

      def section(kind, table)
        return "#{@paint.call(@overview.nothing(kind), :green)}\n" if table.empty?

        notes = @overview.shares(kind).map { |by, text| format("by %-6s %s", by, text) }
        notes.unshift(@overview.rest(kind)) if @overview.rest(kind)
        table.to_text(@paint) + notes.map { |note| "#{@paint.call("  #{note}", :dim)}\n" }.join
      end
    end
  end
end
