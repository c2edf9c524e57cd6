# frozen_string_literal: true

module Memprof
  class Web
    module Pages
      # Classes and modules as the tree of their names.
      class Namespaces < HeapPage
        at "/heaps/:heap/namespaces", menu: "Classes", order: 50

        SORT = %i[retained size count classes name].freeze
        # Constants of a level; of those in it more are shown on a page of their own.
        LIMIT = 100
        MOST = 10_000
        private_constant :LIMIT, :MOST

        def title = text(:under) ? "Classes in #{text(:under)}" : "Classes and modules"

        def breadcrumbs
          text(:under) ? super + [["Classes", here("/namespaces")]] : super
        end

        def data
          answer = ask(:namespaces, under: text(:under), sort: choice(:sort, SORT, :retained), depth: 1,
            limit: limit)
          answer.merge(under: text(:under), limit: limit)
        end

        private

        def limit = integer(:limit, LIMIT, max: MOST)
      end
    end
  end
end
