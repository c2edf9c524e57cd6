# frozen_string_literal: true

module Memprof
  class Web
    module Pages
      # Objects in groups, and optionally in subgroups by something else.
      class Groups < HeapPage
        at "/heaps/:heap/groups", menu: "Groups", order: 30, assets: %w[filter.js]

        # Grouping criteria, with their names.
        BY = {
          class: "class", line: "line", application: "line of the application", file: "file", gem: "gem",
          method: "method", type: "type", generation: "generation", age: "age", size: "size",
          length: "length", shape: "shape", slot: "slot", imemo: "imemo type", namespace: "namespace",
          superclass: "superclass", root: "root"
        }.freeze
        # Groups that contain groups of their own kind.
        TREES = %i[namespace superclass].freeze
        SORT = %i[retained size count name].freeze
        # Criteria whose keys have an order, shown in a chart.
        CHARTED = %i[age generation size length].freeze
        BARS = 100
        WITHIN = 5
        # Groups per page if they have subgroups: a row for each, and one for the omitted ones.
        EACH_WITH_GROUPS = 15
        private_constant :BARS, :WITHIN, :EACH_WITH_GROUPS

        def self.range(key)
          numbers = key.to_s.scan(/\d+/).map(&:to_i)
          [numbers.fetch(0, 0), numbers.fetch(-1, 0)]
        end

        def title = "Objects by #{BY.fetch(by)}"

        def command = command_line("histogram", by: by, then: inner, where: text(:where), sort: sort)

        def data
          answer = ask(:histogram, by: by, then: inner, where: text(:where), sort: sort, then_limit: WITHIN,
            bars: (BARS if CHARTED.include?(by)), **part)
          answer.merge(then: inner, where: text(:where), paging: paging(answer[:rows], answer[:more]))
        end

        # Whether one chooses what the groups have in common.
        def by_choice? = true

        private

        def by = choice(:by, BY.keys, :class)

        def inner
          inner = choice(:then, BY.keys, nil)
          inner unless inner == by || [by, inner].any? { |word| TREES.include?(word) }
        end

        def each = rows_each(inner ? EACH_WITH_GROUPS : EACH)

        def sort = choice(:sort, SORT, nil)
      end

      # `/heaps/1/classes`: the histogram by class, the first question of most.
      class Classes < Groups
        at "/heaps/:heap/classes", title: "Classes", menu: "Classes", order: 28, assets: %w[filter.js]

        def title = self.class.title

        def view = "groups"

        def by_choice? = false

        private

        def by = :class
      end
    end
  end
end
