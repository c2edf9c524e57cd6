# frozen_string_literal: true

require_relative "../paging"

module Memprof
  class Web
    module Pages
      # Objects that a filter chooses, the largest first.
      #
      # @api private
      class ObjectList < HeapPage
        include Paging

        at "/heaps/:heap/objects", menu: "Objects", order: 40

        SORT = %i[retained size length references referrers depth address].freeze

        # @return [String]
        def title = "Objects"

        # @return [Array<String>]
        def scripts = ["filter.js"]

        # @return [Hash{Symbol => Object}] the answer to `top`; `:where`, `:paging`
        def data
          answer = ask(:top, where: text(:where), sort: word(:sort, SORT, :retained), **part)
          answer.merge(where: text(:where), paging: paging(answer[:objects], answer[:more]))
        end
      end
    end
  end
end
