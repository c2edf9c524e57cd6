# frozen_string_literal: true

module Memprof
  class Web
    module Pages
      # The dominator tree: what keeps what alive.
      class Tree < HeapPage
        at "/heaps/:heap/tree", menu: "Tree", order: 60

        DEPTH = 3
        LIMIT = 20
        # Parts of the whole: branches that are smaller are summed up.
        SMALLEST = 2000
        private_constant :DEPTH, :LIMIT, :SMALLEST

        def title = text(:of) ? "What #{branch[:text]} retains" : "Dominator tree"

        def breadcrumbs
          return super unless text(:of)

          dominators = ask(:object, of: text(:of), limit: 0)[:dominators]
          above = dominators.select { |object| object[:address] }.reverse
          super + [["Tree", here("/tree")]] + above.map { |object| [object[:text], path_of(object)] }
        end

        def data = branch.merge(by_class: by_class, limit: limit)

        private

        def branch
          @branch ||= ask(:tree, of: text(:of), by_class: by_class, depth: depth, limit: limit, min: min)
        end

        # What is too small to be looked at would make most of the page.
        def min
          [ask(:tree, of: text(:of), depth: 0)[:sum] / SMALLEST, 1].max unless limit > LIMIT
        end

        def by_class = choice(:by_class, %i[1 0], nil) == :"1"

        def limit = integer(:limit, LIMIT, max: 1000)

        # Of wide levels fewer: a page is not to have more rows than anybody reads.
        def depth = limit > LIMIT ? 1 : DEPTH

        def path_of(object) = "#{here("/tree")}?of=#{object[:address]}"
      end
    end
  end
end
