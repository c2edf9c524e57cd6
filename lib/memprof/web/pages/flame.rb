# frozen_string_literal: true

module Memprof
  class Web
    module Pages
      # `/heaps/1/flame`: what keeps what alive, as a flame graph of the dominator tree.
      #
      # @api private
      class Flame < HeapPage
        at "/heaps/:heap/flame", menu: "Flame graph", order: 25

        FRAMES = 2000
        private_constant :FRAMES

        # @return [String]
        def title
          text(:of) ? "What #{text(:of)} keeps alive" : "What keeps memory alive"
        end

        # @return [Array<Array(String, String)>]
        def breadcrumbs
          text(:of) ? [*super, ["Flame graph", here("/flame")]] : super
        end

        # @return [Array<String>]
        def scripts = ["flame.js"]

        # @return [Array<String>]
        def styles = ["flame.css"]

        # @return [Hash{Symbol => Object}] `:names`, `:frames`, `:folded`, `:whole`; `:object` if it is
        #   of one
        def data
          answer = ask(:flame, of: text(:of), limit: whole(:limit, FRAMES, most: 20_000))
          text(:of) ? { object: ask(:object, of: text(:of), limit: 0) }.merge(answer) : answer
        end
      end
    end
  end
end
