# frozen_string_literal: true

require_relative "../paging"

module Memprof
  class Web
    module Pages
      # Strings that are equal.
      #
      # @api private
      class Strings < HeapPage
        include Paging

        at "/heaps/:heap/strings", menu: "Strings", order: 70

        # @return [String]
        def title = "Equal strings"

        # @return [Array<String>]
        def scripts = ["filter.js"]

        # @return [Hash{Symbol => Object}] the answer to `duplicates`; `:where`, `:paging`
        def data
          answer = ask(:duplicates, where: text(:where), **part)
          answer.merge(where: text(:where), paging: paging(answer[:rows], answer[:more]))
        end
      end
    end
  end
end
