# frozen_string_literal: true

module Memprof
  class Web
    module Pages
      # The files of one kind; redirects if there is only one.
      class RecordList < RecordPage
        def redirect
          files.first.page_path if files.size == 1
        end

        def breadcrumbs = []

        def view = "record_list"

        def data = { files: files.map { |record| { id: record.id, name: record.name, path: record.path } } }

        private

        def files = heaps.records.select { |record| record.kind == self.class.kind }
      end

      class TraceList < RecordList
        at "/traces", title: "Traced requests", menu: "Requests", order: 200
      end

      class TrackedList < RecordList
        at "/tracked", title: "Tracked allocations", menu: "Allocations", order: 210
      end

      class RecordingList < RecordList
        at "/malloc", title: "Recordings of malloc", menu: "Malloc", order: 220
      end

      class BootList < RecordList
        at "/boots", title: "Requires of a boot", menu: "Boot", order: 230
      end
    end
  end
end
