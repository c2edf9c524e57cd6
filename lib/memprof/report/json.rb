# frozen_string_literal: true

require_relative "../printable"

module Memprof
  class Report
    # A report for programs: every site, exact numbers, and only text that is valid UTF-8.
    #
    # @api private
    class Json
      FORMAT = "memprof-report"
      VERSION = 1
      GROUPS = %w[allocated retained].product(%w[memory objects], %w[gem file location class method])
        .map { |kind, metric, name| :"#{kind}_#{metric}_by_#{name}" }.freeze
      private_constant :FORMAT, :VERSION, :GROUPS

      def initialize(report)
        @report = report
      end

      def to_h
        {
          format: FORMAT, version: VERSION,
          meta: symbolize(@report.meta), totals: symbolize(@report.totals),
          groups: GROUPS.to_h { |name| [name, @report.public_send(name)] },
          sites: @report.sites.map(&:to_h),
          strings: {
            allocated: strings(@report.strings_allocated),
            retained: strings(@report.strings_retained)
          }
        }
      end

      private

      def symbolize(hash)
        hash.to_h { |key, value| [key.to_sym, plain(value)] }
      end

      def plain(value)
        case value
        when Hash then symbolize(value)
        when String then Printable.utf8(value)
        else value
        end
      end

      def strings(rows)
        rows.map do |value, locations|
          {
            value: value, objects: locations.sum(&:last),
            locations: locations.map { |location, objects| { location: location, objects: objects } }
          }
        end
      end
    end
  end
end
