# frozen_string_literal: true

require_relative "../../check/comparison"
require_relative "../../check/wording"

module Memprof
  class Web
    module Pages
      # `/tracked/2/diff?before=1`: the changes from one report to another, as `memprof diff` compares them.
      class TrackedDiff < RecordPage
        at "/tracked/:id/diff", assets: %w[diff.css]

        BY = %w[line class gem].freeze
        MEASURES = Check::Comparison::MEASURES.map(&:to_s).freeze
        EACH = 50

        # Only the JSON of reports names lines as the comparison needs them.
        def self.comparable(record, others)
          records = [record, *others].select { |one| Check::Comparison.report?(one.path) }
          records.include?(record) ? records - [record] : []
        end

        def title = earlier ? "#{earlier.name} \u2192 #{record.name}" : record.name

        def redirect
          others = self.class.comparable(record, self.others)
          "#{within("/diff")}?before=#{others.first.id}" if !earlier && others.one?
        end

        def data
          raise BadRequest, "a comparison needs an earlier report: before=1" unless earlier

          rows = comparison.rows(by.to_sym)
          { totals: comparison.totals, warnings: comparison.warnings, count: rows.size,
            rows: rows_of_page(rows, EACH) }
        end

        def by = choice(:by, BY, "line")

        def sort = choice(:sort, MEASURES, MEASURES.first)

        def stacks? = [earlier, record].all? { |report| report.content.stacks? }

        def command
          command_line("diff", earlier.path, by: text(:by), sort: text(:sort)) if earlier
        end

        private

        def comparison
          @comparison ||= Check::Comparison.of_files([earlier.path], [record.path], measure: sort.to_sym)
        rescue ArgumentError => e # not a report
          raise BadRequest, e.message
        rescue SystemCallError => e
          raise Error, "cannot compare: #{e.message}"
        end
      end
    end
  end
end
