# frozen_string_literal: true

require_relative "../../core/writable"

module Memprof
  class Web
    module Pages
      # Where the writable memory of a core file went. Each block is an object of the heap.
      class Blocks < HeapPage
        at "/heaps/:heap/blocks", title: "Blocks of malloc", menu: "Blocks", order: 105

        MOST = 12 # rows of each table
        # Sets of blocks, with their names and filters.
        BLOCKS = {
          leaked: ["leaked blocks", "leaked"], reachable: ["reachable blocks", "type = BLOCK and reachable"],
          garbage: ["blocks that only garbage of Ruby references",
            "type = BLOCK and not reachable and not leaked"],
          free: ["free blocks", "state in (free, cached)"]
        }.freeze
        private_constant :MOST, :BLOCKS

        def self.there?(_heaps, entry) = entry.core?

        def breadcrumbs = [[entry.name, here]]

        def command = command_line("core", blocks: nil)

        def data
          unless entry.core?
            raise NotFound, "#{entry.name} is not a core file; blocks of malloc in a dump are objects of " \
                            "type BLOCK"
          end

          overview = entry.core_answer(:overview)
          parts = Core::Writable.parts(overview)
          known = { overview: overview, parts: parts, faults: Core::Writable.faults(overview) }
          return known if overview[:unknown]

          known.merge(parts: with_blocks(parts), leaked: kinds("leaked"), **arenas)
        end

        private

        # The blocks as the heap divides them, so that links have what they say.
        def with_blocks(parts)
          blocks = BLOCKS.map do |set, (what, where)|
            total = ask(:histogram, by: :type, where: where)[:total]
            { set: set, what: what, bytes: total[:size], count: total[:count], where: where }
          end
          all = parts.reject { |part| part[:set] } + blocks
          all.select { |part| part[:bytes].positive? }.sort_by { |part| -part[:bytes] }
        end

        def kinds(where) = ask(:histogram, by: :class, where: where, sort: :size, limit: MOST)

        def arenas
          arenas, mapped = entry.core_answer(:arenas).values_at(:arenas, :mapped)
          { arenas: arenas.first(MOST), more_arenas: [arenas.size - MOST, 0].max, mapped: mapped }
        end
      end
    end
  end
end
