# frozen_string_literal: true

require_relative "verdict"

module Memprof
  class Web
    module Pages
      # Large things in one heap, what retains them, and which line allocated them.
      class Leaks < HeapPage
        include Findings

        at "/heaps/:heap/leaks", title: "What is large", menu: "Leaks", order: 20, assets: ["diff.css"]

        LIMIT = 20
        private_constant :LIMIT

        # Uses the layout of the page about growth.
        def view = "verdict"

        def command = command_line("leaks", threshold: text(:threshold), own: text(:own))

        def data
          @data ||= findings([entry], ask(:leaks, threshold: threshold, limit: LIMIT, own: text(:own)))
        end

        private

        def threshold = decimal(:threshold, Float::MIN..100, "a number above 0 and at most 100")
      end
    end
  end
end
