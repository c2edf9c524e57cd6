# frozen_string_literal: true

module Memprof
  class Web
    module Pages
      # `/tracked/1`: tracked allocations by site, class, file, gem or method.
      class Tracked < RecordPage
        at "/tracked/:id"

        BY = %w[site class file gem method].freeze
        EACH = 100

        def data
          rows = content.rows(by, sort, internal: internal?)
          { facts: content.facts, values: content.values, stacks: content.stacks?, count: rows.size,
            internal: (content.sum(content.internal) unless content.internal.empty?),
            rows: rows_of_page(rows, EACH) }
        end

        # Whether VM-internal objects are listed, too.
        def internal? = !text(:internal).nil?

        def by = choice(:by, BY, "site")

        def sort = choice(:sort, content.values, content.values.first)
      end

      # `/tracked/1/flame`: the call stacks that allocated objects, as a flame graph. `own=yes` omits frames
      # of gems and of Ruby.
      class TrackedFlame < RecordPage
        at "/tracked/:id/flame", title: "Allocations by call stack", assets: %w[flame.js flame.css]

        def data
          flame = content.flame(value, own: own?)
          # Starts at the gem: the rest of a path does not fit into a frame.
          flame[:names] = flame[:names].map { |name| Records::Tracked.short(name) }
          { values: content.values, stacks: content.stacks?, own: own?, **flame }
        end

        def own? = choice(:own, %w[yes no], "no") == "yes"

        def value = choice(:value, content.values, content.values.first)
      end
    end
  end
end
