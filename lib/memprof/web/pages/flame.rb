# frozen_string_literal: true

module Memprof
  class Web
    module Pages
      # `/heaps/1/flame`: the dominator tree as a flame graph.
      class Flame < HeapPage
        at "/heaps/:heap/flame", menu: "Flame graph", order: 25, assets: %w[flame.js flame.css]

        FRAMES = 2000
        private_constant :FRAMES

        def title = text(:of) ? "Flame graph of #{text(:of)}" : "Flame graph of retained sizes"

        def command = text(:of) ? command_line("tree", text(:of)) : command_line("tree", by: :class)

        def breadcrumbs
          text(:of) ? [*super, ["Flame graph", here("/flame")]] : super
        end

        def data
          answer = ask(:flame, of: text(:of), limit: integer(:limit, FRAMES, max: 20_000))
          text(:of) ? { object: ask(:object, of: text(:of), limit: 0) }.merge(answer) : answer
        end
      end
    end
  end
end
