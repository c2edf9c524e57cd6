# frozen_string_literal: true

require_relative "../paging"

module Memprof
  class Web
    module Pages
      # Objects that a filter chooses, the largest first.
      class ObjectList < HeapPage
        include Paging

        at "/heaps/:heap/objects", menu: "Objects", order: 40

        SORT = %i[retained size length references referrers depth address].freeze

        def title = "Objects"

        def scripts = ["filter.js"]

        def data
          answer = ask(:top, where: text(:where), sort: word(:sort, SORT, :retained), **part)
          answer.merge(where: text(:where), paging: paging(answer[:objects], answer[:more]))
        end
      end
    end
  end
end
