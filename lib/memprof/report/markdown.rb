# frozen_string_literal: true

module Memprof
  class Report
    # A report to paste into an issue or a pull request.
    class Markdown
      def initialize(report, limit:)
        @overview = Overview.new(report, limit: limit)
        @empty = report.total_allocated.zero?
      end

      def to_s
        head = ["**#{@overview.headline}**", @overview.facts, @overview.internal].compact.join("  \n") << "\n"
        return head if @empty

        tables = { retained: @overview.retained, allocated: @overview.allocated }
        [head, *peak, *tables.map { |kind, table| section(kind, table) }].join("\n")
      end

      private

      def peak
        facts = @overview.peak_facts
        return unless facts

        rest = @overview.rest(:peak)
        ["**#{facts}**\n\n#{@overview.peak.to_markdown}#{"\n#{rest}\n" if rest}"]
      end

      def section(kind, table)
        return "#{@overview.nothing(kind)}\n" if table.empty?

        rest = @overview.rest(kind)
        shares = @overview.shares(kind).map { |by, text| "By #{by}: #{escape(text)}  \n" }
        [table.to_markdown, "\n", rest ? "#{rest}  \n" : "", *shares].join
      end

      # Class names such as `<iseq>` or `Foo_bar*` are no tags and no emphasis.
      def escape(text) = text.gsub(/[<>*_`|\[\]\\]/) { |character| "\\#{character}" }
    end
  end
end
