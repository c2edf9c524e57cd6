# frozen_string_literal: true

require_relative "../../own_code"

module Memprof
  class Web
    module Pages
      # What keeps a large part of the heap alive, and why.
      class Leaks < HeapPage
        at "/heaps/:heap/leaks", title: "Leak suspects", menu: "Leaks", order: 20

        LIMIT = 20
        private_constant :LIMIT

        def data
          @data ||= OwnCode.with_source(ask(:suspects, threshold: threshold, limit: LIMIT, own: text(:own)))
        end

        private

        def threshold = decimal(:threshold, Float::MIN..100, "a number above 0 and at most 100")
      end
    end
  end
end
