# frozen_string_literal: true

require_relative "../record_list"

module Memprof
  class Web
    module Pages
      # `/traces`: the files of traced requests; the only one if there is one.
      class TraceList < RecordList
        at "/traces", menu: "Requests", order: 200
        about :trace

        def title = "Traced requests"
      end
    end
  end
end
