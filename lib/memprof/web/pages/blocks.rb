# frozen_string_literal: true

require_relative "../../core/writable"

module Memprof
  class Web
    module Pages
      # Where the writable memory of a core file went. Each block is an object of the heap.
      class Blocks < HeapPage
        at "/heaps/:heap/blocks", title: "Blocks of malloc", menu: "Blocks", order: 105

        MOST = 12 # rows of each table
        private_constant :MOST

        def self.there?(_heaps, entry) = entry.core?

        def breadcrumbs = [[entry.name, here]]

        def command = command_line("core", blocks: nil)

        def data
          raise NotFound, "#{entry.name} has no blocks of malloc; only core files do" unless entry.core?

          overview = entry.core_answer(:overview)
          known = {
            overview: overview, parts: Core::Writable.parts(overview), faults: Core::Writable.faults(overview)
          }
          overview[:unknown] ? known : known.merge(kinds, arenas)
        end

        private

        def kinds
          { leaked: "leaked", reachable: "type = BLOCK and reachable" }.transform_values do |where|
            ask(:histogram, by: :class, where: where, sort: :size, limit: MOST)
          end
        end

        def arenas
          arenas, mapped = entry.core_answer(:arenas).values_at(:arenas, :mapped)
          { arenas: arenas.first(MOST), more_arenas: [arenas.size - MOST, 0].max, mapped: mapped }
        end
      end
    end
  end
end
