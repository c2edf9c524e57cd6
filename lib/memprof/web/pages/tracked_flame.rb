# frozen_string_literal: true

require_relative "../record_page"

module Memprof
  class Web
    module Pages
      # `/tracked/1/flame`: the call stacks that made objects, as a flame graph. `own=yes` leaves out the
      # frames of gems and of Ruby.
      class TrackedFlame < RecordPage
        at "/tracked/:id/flame", title: "Allocations by call stack", assets: %w[flame.js flame.css]

        def breadcrumbs = [*super, [record.name, within]]

        def data
          flame = content.flame(value, own: own?)
          # From the gem on: nothing else of a path fits into a frame.
          flame[:names] = flame[:names].map { |name| Records::Tracked.short(name) }
          { values: content.values, stacks: content.stacks?, own: own?, **flame }
        end

        def own? = choice(:own, %w[yes no], "no") == "yes"

        def value = choice(:value, content.values, content.values.first)
      end
    end
  end
end
