# frozen_string_literal: true

module Memprof
  class Web
    module Pages
      # How full the pages of the heap are.
      class Slots < HeapPage
        at "/heaps/:heap/slots", menu: "Slots", order: 100

        def title = "Slots"

        def data = ask(:slots)
      end
    end
  end
end
