# frozen_string_literal: true

require_relative "wording"

module Memprof
  module Check
    # A comparison as JUnit's XML, with a test case for each limit.
    class Junit
      LIMIT = 20
      ESCAPES = { "&" => "&amp;", "<" => "&lt;", ">" => "&gt;", "\"" => "&quot;" }.freeze
      private_constant :LIMIT, :ESCAPES

      def initialize(comparison, outcomes, limit: nil)
        @comparison = comparison
        @outcomes = outcomes
        @limit = limit || LIMIT
      end

      def to_s
        counts = "tests=\"#{@outcomes.size}\" failures=\"#{@outcomes.count(&:failed)}\""
        <<~XML
          <?xml version="1.0" encoding="UTF-8"?>
          <testsuites name="memprof" #{counts}>
            <testsuite name="memprof" #{counts}>
          #{@outcomes.map { |outcome| test_case(outcome) }.join("\n")}
            </testsuite>
          </testsuites>
        XML
      end

      private

      def test_case(outcome)
        head = "    <testcase classname=\"memprof\" name=\"#{escape(outcome.name)}\""
        return "#{head}/>" unless outcome.failed

        lines = @comparison.grown(outcome.measure).first(@limit).map do |line|
          escape("#{line[:file]}:#{line[:line]}: #{Wording.line(line)}")
        end
        failure = "<failure message=\"#{escape(outcome.text)}\">#{lines.join("\n")}</failure>"
        "#{head}>\n      #{failure}\n    </testcase>"
      end

      def escape(text) = Printable.line(text).gsub(/[&<>"]/, ESCAPES)
    end
  end
end
