# frozen_string_literal: true

require_relative "../../core/writable"

module Memprof
  class Web
    module Pages
      # Where the writable memory of a core file went, and what was leaked.
      class Blocks < CorePage
        at "/heaps/:heap/blocks", title: "Blocks of malloc", menu: "Blocks", order: 105

        # Rows of each table.
        MOST = 12
        private_constant :MOST

        def breadcrumbs = [[entry.name, here]]

        def data
          overview = core(:overview)
          arenas = core(:arenas)
          {
            overview: overview, parts: Core::Writable.parts(overview),
            faults: Core::Writable.faults(overview), leaked: groups(:leaked), native: groups(:native),
            objects: core(:objects)[:rows].select { |row| row[:blocks][:count].positive? }.first(MOST),
            largest: core(:largest, :used, limit: MOST), arenas: arenas[:arenas].first(MOST),
            more_arenas: [arenas[:arenas].size - MOST, 0].max, mapped: arenas[:mapped]
          }
        end

        private

        # Blocks that are alike, most bytes first: by what they begin with, by their owner, or by their size.
        def groups(set)
          answer = core(:summarize, set)
          rows = answer[:rows].map { |row| { signature: row[:name], **row.slice(:place, :count, :bytes) } }
          rows += answer[:sizes].map { |row| { signature: "?", **row } }
          most = rows.max_by(MOST) { |row| row[:bytes] }
          { total: answer[:total], rows: most, more: rows.size - most.size }
        end
      end
    end
  end
end
