# frozen_string_literal: true

require_relative "../diff_page"

module Memprof
  class Web
    module Pages
      # `/diff/objects?a=1&b=2&change=new`: objects that changed, one by one.
      class DiffObjects < DiffPage
        at "/diff/objects"

        CHANGES = %w[new gone kept survived temporary].freeze
        SORT = %w[retained size address].freeze
        NAMES = { "gone" => "freed", "kept" => "surviving" }.freeze
        EACH = 100

        def title = "#{NAMES.fetch(change, change).capitalize} objects"

        def breadcrumbs
          [*super, ["Comparison", "/diff?#{URI.encode_www_form(subject.except(:where))}"]]
        end

        def entry = change == "gone" ? entries[0] : super

        def data
          answer = ask(:objects, change: change, sort: sort, limit: EACH, offset: (number - 1) * EACH)
          existing(answer[:objects], number)
          answer
        end

        def change = choice(:change, CHANGES, "new")

        def sort = choice(:sort, SORT, "retained")
      end
    end
  end
end
