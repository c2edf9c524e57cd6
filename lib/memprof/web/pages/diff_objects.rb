# frozen_string_literal: true

require_relative "../diff_page"

module Memprof
  class Web
    module Pages
      # `/diff/objects?a=1&b=2&change=new`: objects that changed, one by one.
      #
      # @api private
      class DiffObjects < DiffPage
        at "/diff/objects"

        CHANGES = %w[new gone kept survived temporary].freeze
        SORT = %w[retained size address].freeze
        EACH = 100

        # @return [String]
        def title
          "#{change.capitalize} objects"
        end

        # @return [Array<Array(String, String)>]
        def breadcrumbs
          [*super, ["Comparison", "/diff?#{URI.encode_www_form(subject.except(:where))}"]]
        end

        # @return [Heaps::Entry, nil] what is gone is in the heap before
        def entry = change == "gone" ? entries[0] : super

        # @return [Hash{Symbol => Object}] `:objects`, `:count`, `:size`, `:warnings`
        def data
          answer = ask(:objects, change: change, sort: sort, limit: EACH, offset: (number - 1) * EACH)
          existing(answer[:objects], number)
          answer
        end

        # @return [Integer] of the page of the list
        def number = whole(:page, 1)

        # @return [String]
        def change = word(:change, CHANGES, "new")

        # @return [String]
        def sort = word(:sort, SORT, "retained")
      end
    end
  end
end
