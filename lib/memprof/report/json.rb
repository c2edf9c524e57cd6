# frozen_string_literal: true

module Memprof
  class Report
    # A report for programs: every site, exact numbers, and only valid UTF-8.
    class Json
      FORMAT = "memprof-report"
      VERSION = 1
      GROUPS = %w[allocated retained].product(%w[memory objects], %w[gem file location class method])
        .map { |kind, metric, name| :"#{kind}_#{metric}_by_#{name}" }.freeze
      private_constant :FORMAT, :VERSION, :GROUPS

      def initialize(report)
        @report = report
      end

      def to_h = document { @report.sites.map(&:to_h) }

      # The same as JSON, without allocating an object for each site.
      def each_part(&block)
        Loading.json
        document { nil }.each_with_index do |(key, value), index|
          block.call("#{index.zero? ? "{" : ","}#{JSON.generate(key.to_s)}:")
          key == :sites ? sites(&block) : block.call(JSON.generate(value))
        end
        block.call("}")
      end

      private

      def sites(&block)
        block.call("[")
        @report.profile.sites_json(&block)
        block.call("]")
      end

      # The document, with the sites that the block returns.
      def document
        {
          format: FORMAT, version: VERSION,
          meta: symbolize(@report.meta), totals: symbolize(@report.totals),
          groups: GROUPS.to_h { |name| [name, @report.public_send(name)] },
          sites: yield, sources: sources,
          strings: {
            allocated: strings(@report.strings_allocated),
            retained: strings(@report.strings_retained)
          }
        }
      end

      # Source lines by file and line, which help to find a line again after an edit has moved it.
      def sources
        @report.profile.sources.to_h do |file, lines|
          [Printable.utf8(file), lines.transform_values { |text| Printable.utf8(text) }]
        end
      end

      def symbolize(hash) = hash.to_h { |key, value| [key.to_sym, plain(value)] }

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
