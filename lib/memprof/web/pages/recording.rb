# frozen_string_literal: true

require_relative "../recording_page"

module Memprof
  class Web
    module Pages
      # `/malloc/1`: a recording of malloc: the peak, what is live at the end, consumption over time, lines,
      # sizes. `location` chooses the lines whose names contain it.
      class Recording < RecordingPage
        at "/malloc/:id", assets: %w[timeline.js]

        EACH = 50
        SORT = { "peak" => :peak_bytes, "leaked" => :leaked_bytes, "allocated" => :allocated_bytes,
                 "blocks" => :leaked, "calls" => :allocations, "temporary" => :temporary }.freeze
        private_constant :SORT

        def title = record.name

        def data
          summary = content.summary(**chosen)
          rows = content.locations(SORT.fetch(sort), part: text(:location), **chosen)
          summary.reject { |key, _| %i[locations timeline].include?(key) }.merge(
            range: range, timeline: content.timeline, location: text(:location), locations: rows.size,
            rows: rows_of_page(rows, EACH)
          )
        end

        def sort = choice(:sort, SORT.keys, "peak")

        # What rows are sorted by.
        def key = SORT.fetch(sort)
      end
    end
  end
end
