# frozen_string_literal: true

module Memprof
  class Web
    module Pages
      # The dominator tree: which objects retain which.
      class Tree < HeapPage
        at "/heaps/:heap/tree", menu: "Tree", order: 60

        DEPTH = 3
        LIMIT = 20
        # Branches below this fraction of the heap (1/2000) are summed up.
        SMALLEST = 2000
        private_constant :DEPTH, :LIMIT, :SMALLEST

        def title = text(:of) ? "What #{branch[:text]} retains" : "Dominator tree"

        def command = command_line("tree", *text(:of), by: (:class if by_class))

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

        # Tiny branches would make up most of the page.
        def min
          [ask(:tree, of: text(:of), depth: 0)[:sum] / SMALLEST, 1].max unless limit > LIMIT
        end

        def by_class = choice(:by_class, %i[1 0], nil) == :"1"

        def limit = integer(:limit, LIMIT, max: 1000)

        # Fewer levels if they are wide: a page should not have more rows than anyone reads.
        def depth = limit > LIMIT ? 1 : DEPTH

        def path_of(object) = "#{here("/tree")}?of=#{object[:address]}"
      end
    end
  end
end
