# frozen_string_literal: true

module Memprof
  class Web
    module Pages
      # How full the pages of the heap are.
      #
      # @api private
      class Slots < HeapPage
        at "/heaps/:heap/slots", menu: "Slots", order: 100

        # @return [String]
        def title = "Slots"

        # @return [Hash{Symbol => Object}] the answer to `slots`
        def data = ask(:slots)
      end
    end
  end
end
