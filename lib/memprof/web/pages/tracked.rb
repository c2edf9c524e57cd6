# frozen_string_literal: true

require_relative "../record_page"

module Memprof
  class Web
    module Pages
      # `/tracked/1`: allocations that were tracked, by site, class, file, gem or method.
      #
      # @api private
      class Tracked < RecordPage
        at "/tracked/:id"
        about :tracked

        BY = %w[site class file gem method].freeze
        EACH = 100

        # @return [String]
        def title = record.name

        # @return [Hash{Symbol => Object}] `:facts`, `:values` (names of what is counted), `:stacks` (whether
        #   call stacks are there), `:count` of rows, `:rows`
        def data
          rows = content.rows(by, sort)
          { facts: content.facts, values: content.values, stacks: content.stacks?, count: rows.size,
            rows: existing(rows.drop((number - 1) * EACH).first(EACH), number) }
        end

        # @return [Integer] of the page of the list
        def number = whole(:page, 1)

        # @return [String]
        def by = word(:by, BY, "site")

        # @return [String] the value that is sorted by
        def sort = word(:sort, content.values, content.values.first)
      end
    end
  end
end
