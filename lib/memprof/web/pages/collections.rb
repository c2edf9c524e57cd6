# frozen_string_literal: true

module Memprof
  class Web
    module Pages
      # Arrays, hashes and the like: how full they are, and who holds empty ones.
      class Collections < HeapPage
        at "/heaps/:heap/collections", menu: "Collections", order: 75

        SORT = %i[length retained size unused].freeze
        LIMIT = 50
        private_constant :LIMIT

        def title = "Collections"

        def scripts = ["filter.js"]

        def data
          answer = ask(:collections, where: text(:where), sort: word(:sort, SORT, :unused), limit: LIMIT)
          answer.merge(where: text(:where))
        end
      end
    end
  end
end
