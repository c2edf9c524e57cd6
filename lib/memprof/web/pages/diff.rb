# frozen_string_literal: true

require_relative "../diff_page"
require_relative "../../wording"

module Memprof
  class Web
    module Pages
      # `/diff?a=1&b=2&c=3`: what changed from one heap to the next. Without heaps, which there are.
      class Diff < DiffPage
        at "/diff"

        BY = %w[class site file type].freeze
        SORT = %w[size count new survived retained].freeze
        OWNERS = 8
        ROWS = 40
        SURVIVORS = 12
        private_constant :OWNERS, :ROWS, :SURVIVORS

        # Two or three heaps need no choice.
        def redirect
          return if text(:a) || text(:b) || !heaps.count.between?(2, 3)

          "/diff?#{%w[a b c].zip(heaps.map(&:id)).filter_map { |name, id| "#{name}=#{id}" if id }.join("&")}"
        end

        def title = entries.size > 1 ? names.join(" \u2192 ") : "Compare heaps"

        def data
          open = heaps.map { |entry| { id: entry.id, name: entry.name } }
          return { open: open } unless text(:a) || text(:b)

          { open: open, totals: ask(:totals), heaps: comparison.heaps, rows: rows,
            owners: ask(:owners, limit: OWNERS, sort: :retained), survivors: survivors }.compact
        end

        def by = choice(:by, BY, "class")

        def sort = choice(:sort, comparison.three? ? SORT : SORT - ["survived"], "size")

        private

        def rows = ask(:rows, by: by, sort: sort, changed: true, limit: integer(:limit, ROWS, max: 1000))

        def survivors
          ask(:objects, change: :survived, limit: SURVIVORS) if comparison.three?
        end
      end
    end
  end
end
