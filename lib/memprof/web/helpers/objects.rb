# frozen_string_literal: true

require "json"

module Memprof
  class Web
    module Helpers
      # Objects, classes, places and groups of answers, each with its link.
      module Objects
        LONGEST = 120 # characters of a text in a table
        OWN = /\A[\d,]+ objects? of memprof itself /
        private_constant :LONGEST, :OWN

        def object(object)
          address = object[:address]
          target = address ? object_url(address) : objects_url(Filter.root(object[:class]))
          link(short(object[:text] || address), target, class: "object")
        end

        def site(site)
          return Html.new if site.nil? || site[:file].to_s.empty?

          link(Cell.place(site), objects_url(Filter.site(site)), class: "place",
            title: Cell.place(site, full: true))
        end

        def class_link(name)
          name.to_s.empty? ? Html.new : link(short(name), class_url(name), class: "object")
        end

        def short(text, longest = LONGEST)
          return text if text.length <= longest

          half = (longest - 3) / 2
          Html.tag(:span, "#{text[0, half]}...#{text[-half, half]}", title: text[0, 2000])
        end

        # A value in a table cell.
        def present(value, kind)
          case kind
          when :bytes then bytes(value)
          when :percent then Html.join([percent(value), bar(value)])
          when :place then site(value)
          when :text, :name, :label then short(value.to_s)
          else cell(value, kind)
          end
        end

        def cell(value, kind) = Cell.text(value, kind)

        # Caveats of an answer. What memprof itself allocated is not a reason to worry.
        def warnings(warnings)
          Html.join(warnings.map do |warning|
            Html.tag(:p, warning, class: warning.match?(OWN) ? "quiet" : "note")
          end, "\n")
        end

        # A list in a table cell.
        def list(things) = Html.join(things.map { |thing| Html.tag(:div, yield(thing)) })

        def equal_strings(row, live)
          whole = row[:text] && row[:text].bytesize == row[:length]
          link(count(row[:count]),
            whole ? objects_url(Filter.all("value = #{Filter.quoted(row[:text])}", live)) : nil)
        end

        def generation(number) = number && link(count(number), objects_url("generation = #{number}"))

        def fact(value)
          return link(value, object_url(value)) if value.is_a?(String) && value.match?(/\A0x\h+\z/)

          text = value.is_a?(String) ? value : JSON.generate(value, max_nesting: 0)
          Html.escape(text.length > 2000 ? "#{text[0, 2000]}..." : text)
        end

        def source_lines(lines, marked)
          rows = lines.map do |row|
            Html.tag(row[:line] == marked ? :mark : :span, row[:line].to_s.rjust(5), "  ", row[:text])
          end
          Html.tag(:pre, rows, class: "source")
        end

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

        # Where the objects of a row are subdivided: classes by line, lines by class.
        def group_url(by, row) = row[:where] && groups_url(by.to_s == "line" ? :class : :line, row[:where])
      end
    end
  end
end
