# frozen_string_literal: true

require_relative "../paging"

module Memprof
  class Web
    module Pages
      # Procs by where they were written, with what they captured.
      class Procs < HeapPage
        include Paging

        at "/heaps/:heap/procs", menu: "Procs", order: 80

        SORT = %i[retained count size].freeze

        def title = "Procs"

        def scripts = ["filter.js"]

        def data
          answer = ask(:procs, where: text(:where), sort: word(:sort, SORT, :retained), **part)
          answer.merge(where: text(:where), paging: paging(answer[:rows], answer[:more]))
        end
      end
    end
  end
end
