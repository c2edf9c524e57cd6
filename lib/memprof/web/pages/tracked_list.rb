# frozen_string_literal: true

require_relative "../record_list"

module Memprof
  class Web
    module Pages
      # `/tracked`: the files of tracked allocations; the only one if there is one.
      class TrackedList < RecordList
        at "/tracked", menu: "Allocations", order: 210
        about :tracked

        def title = "Tracked allocations"
      end
    end
  end
end
