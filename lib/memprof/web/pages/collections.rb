# frozen_string_literal: true

module Memprof
  class Web
    module Pages
      # Arrays, hashes and the like: how full they are, and who holds empty ones.
      #
      # @api private
      class Collections < HeapPage
        at "/heaps/:heap/collections", menu: "Collections", order: 75

        SORT = %i[length retained size unused].freeze
        LIMIT = 50
        private_constant :LIMIT

        # @return [String]
        def title = "Collections"

        # @return [Array<String>]
        def scripts = ["filter.js"]

        # @return [Hash{Symbol => Object}] the answer to `collections`; `:where`
        def data
          answer = ask(:collections, where: text(:where), sort: word(:sort, SORT, :unused), limit: LIMIT)
          answer.merge(where: text(:where))
        end
      end
    end
  end
end
