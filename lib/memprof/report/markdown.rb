# frozen_string_literal: true

module Memprof
  class Report
    # A report to paste into an issue or a pull request.
    class Markdown < Overview
      private

      def head = "#{["**#{headline}**", facts, internal].compact.join("  \n")}\n"

      def largest
        rest = rest(:peak)
        "**#{peak_facts}**\n\n#{peak.to_markdown}#{"\n#{rest}\n" if rest}"
      end

      def section(kind, table)
        return "#{nothing(kind)}\n" if table.empty?

        rest = rest(kind)
        shares = shares(kind).map { |by, text| "By #{by}: #{escape(text)}  \n" }
        [table.to_markdown, "\n", ("#{rest}  \n" if rest), *shares].join
      end

      # Class names such as `<iseq>` or `Foo_bar*` are not tags and not emphasis.
      def escape(text) = text.gsub(/[<>*_`|\[\]\\]/) { |character| "\\#{character}" }
    end
  end
end
