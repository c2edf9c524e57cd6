# frozen_string_literal: true

module Memprof
  class Web
    module Helpers
      # Pictures and links of a comparison.
      module DiffBars
        BAR = 18 # pixels
        WIDTH = 1200
        NAMES = 640 # pixels of the names beside exported bars, and their letters
        LETTERS = 80
        private_constant :BAR, :WIDTH, :NAMES, :LETTERS

        # The heaps as bars of equal scale: objects in both, freed and new objects.
        def heap_bars(totals, heaps)
          bars = heap_parts(totals, heaps)
          most = [bars.map { |parts| parts.sum { |_, size| size } }.max, 1].max
          rows = bars.each_with_index.map do |parts, index|
            [Html.tag(:dt, heaps[index][:name]), Html.tag(:dd, stacked(parts, most),
              Html.tag(:span, bytes(heaps[index][:objects][:size]), class: "figure"))]
          end
          Html.tag(:dl, rows, class: "heap-bars")
        end

        # Growth or loss, from the middle of the cell.
        def growth_bar(value, most)
          width = (48.0 * value.abs / [most, 1].max).round(2)
          Html.tag(:svg, Html.tag(:rect, x: value.negative? ? 50 - width : 50, width: width, height: 8),
            class: value.negative? ? "bar less" : "bar more", viewBox: "0 0 100 8",
            preserveAspectRatio: "none", aria_hidden: "true")
        end

        # The bars of a table as one picture, which is only exported. The block returns a row's name, its
        # change, and the change in words.
        def export_growth(rows, most, &block)
          changes = rows.map(&block).reject { |_, value, _| value.zero? }
          return if changes.empty?

          middle = (NAMES + WIDTH) / 2
          parts = changes.each_with_index.map do |(name, value, words), index|
            width = ((WIDTH - middle) * value.abs.fdiv([most, 1].max)).round(1)
            y = index * (BAR + 4)
            Html.tag(:g, Html.tag(:text, Printable.fit(name, LETTERS), x: 4, y: y + BAR - 4),
              Html.tag(:rect, x: value.negative? ? middle - width : middle, y: y, width: width, height: BAR),
              Html.tag(:text, words, x: middle + (value.negative? ? 6 : -6), y: y + BAR - 4,
                text_anchor: value.negative? ? "start" : "end"), class: value.negative? ? "less" : "more")
          end
          height = changes.size * (BAR + 4)
          drawing(Html.tag(:svg, parts, viewBox: "0 0 #{WIDTH} #{height}", class: "chart"))
        end

        def changed_url(change, row = nil)
          filter = Filter.all(page.subject[:where], row && row_filter(row))
          url("/diff/objects", **page.subject, where: filter, change: change)
        end

        def row_name(row)
          return site(file: row[:file], line: row[:line]) if row[:file]
          # The heap that has it.
          there = { entry: row[:after][:count].zero? ? page.entries.first : page.entry }
          return link(row[:type], groups_url(:class, "type = #{row[:type].upcase}", **there)) if row[:type]

          row[:class] ? link(short(row[:class]), class_url(row[:class], **there)) : Html.escape("(unknown)")
        end

        private

        def row_filter(row)
          return Filter.site(row) if row[:file]
          return "type = #{row[:type].upcase}" if row[:type]

          row[:class] ? "class = #{Filter.quoted(row[:class])}" : "file is none"
        end

        def heap_parts(totals, heaps)
          size = ->(name) { totals.dig(name, :size).to_i }
          after = totals[:survived] ? %i[kept survived temporary] : %i[kept new]
          before = { kept: totals[:before][:size] - size[:gone], gone: size[:gone] }
          parts = [before, after.to_h { |name| [name, size[name]] }]
          later = heaps[2]
          parts << { rest: later[:objects][:size] - size[:survived], survived: size[:survived] } if later
          parts
        end

        def stacked(parts, most)
          x = 0.0
          boxes = parts.map do |name, size|
            width = [100.0 * size / most, 0].max
            box = Html.tag(:rect, Html.tag(:title, "#{name}: #{Units.bytes(size)}"), x: "#{x.round(3)}%",
              width: "#{width.round(3)}%", height: BAR, class: "part #{name}")
            x += width
            box
          end
          words = parts.map { |name, size| "#{name} #{Units.bytes(size)}" }
          Html.tag(:svg, boxes, width: "100%", height: BAR, role: "img", aria_label: words.join(", "))
        end
      end
    end
  end
end
