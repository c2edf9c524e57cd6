# frozen_string_literal: true

require_relative "../../cell"
require_relative "../../units"
require_relative "../html"

module Memprof
  class Web
    module Helpers
      # Groups of objects by what they have in common.
      module Groups
        def group_link(by, row)
          key = row[:key]
          return Html.tag(:span, "(unknown)", class: "quiet") if key.nil?

          case by.to_s
          when "class" then class_link(key)
          when "line", "file" then link(Cell.place(key), group_url(by, row), class: "place", title: key)
          else link(short(group_key(by, key)), group_url(by, row), class: "object")
          end
        end

        def group_key(by, key)
          range = Pages::Groups.range(key).uniq
          case by.to_s
          when "size", "slot" then range.map { |size| Units.bytes(size) }.join(" to ")
          when "length", "age", "generation" then range.map { |number| count(number) }.join(" to ")
          else key.to_s
          end
        end

        private

        # Where the objects of a row are parted further: classes by line, lines by class.
        def group_url(by, row)
          row[:where] && groups_url(by.to_s == "line" ? :class : :line, row[:where])
        end
      end
    end
  end
end
