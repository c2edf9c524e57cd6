# frozen_string_literal: true

require_relative "../record_page"

module Memprof
  class Web
    module Pages
      # The files of one kind; goes to the only one if there is one.
      class RecordList < RecordPage
        def redirect
          files.first.page_path if files.size == 1
        end

        def breadcrumbs = []

        def view = "record_list"

        def data
          { files: files.map { |record| { id: record.id, name: record.name, path: record.path } } }
        end

        private

        def files = heaps.records.select { |record| record.kind == self.class.kind }
      end

      # `/traces`: the files of traced requests.
      class TraceList < RecordList
        at "/traces", menu: "Requests", order: 200
        about :trace

        def title = "Traced requests"
      end

      # `/tracked`: the files of tracked allocations.
      class TrackedList < RecordList
        at "/tracked", menu: "Allocations", order: 210
        about :tracked

        def title = "Tracked allocations"
      end

      # `/malloc`: the recordings of malloc.
      class RecordingList < RecordList
        at "/malloc", menu: "Malloc", order: 220
        about :malloc

        def title = "Recordings of malloc"
      end

      # `/boots`: the files of requires.
      class BootList < RecordList
        at "/boots", menu: "Boot", order: 230
        about :boot

        def title = "Requires of a boot"
      end
    end
  end
end
