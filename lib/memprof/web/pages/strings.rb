# frozen_string_literal: true

require_relative "../paging"

module Memprof
  class Web
    module Pages
      # Strings that are equal.
      class Strings < HeapPage
        include Paging

        at "/heaps/:heap/strings", menu: "Strings", order: 70

        def title = "Duplicate strings"

        def scripts = ["filter.js"]

        def data
          answer = ask(:duplicates, where: text(:where), **part)
          answer.merge(where: text(:where), paging: paging(answer[:rows], answer[:more]))
        end
      end
    end
  end
end
