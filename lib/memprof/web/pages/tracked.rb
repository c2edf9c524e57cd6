# frozen_string_literal: true

require_relative "../frames"

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

        # Other reports that it can be compared with.
        def comparable = TrackedDiff.comparable(record, others)

        # Whether VM-internal objects are listed, too.
        def internal? = !text(:internal).nil?

        def by = choice(:by, BY, "site")

        def sort = choice(:sort, content.values, content.values.first)
      end

      # `/tracked/1/flame`: the call stacks that allocated objects, as a flame graph. `own=yes` omits frames
      # of gems and of Ruby, `before` compares with another file.
      class TrackedFlame < RecordPage
        at "/tracked/:id/flame", title: "Allocations by call stack", assets: %w[flame.js flame.css]

        def data
          flame = earlier ? Frames.difference(flame_of(earlier), flame_of(record)) : flame_of(record)
          { values: content.values, stacks: content.stacks?, own: own?, **Frames.widest(flame) }
        end

        def own? = choice(:own, %w[yes no], "no") == "yes"

        def value = choice(:value, content.values, content.values.first)

        private

        def flame_of(record)
          unless record.content.values.include?(value)
            raise BadRequest, "#{record.name} has no #{value}; only #{record.content.values.join(", ")}"
          end

          record.content.drawn_flame(value, own: own?)
        end
      end
    end
  end
end
