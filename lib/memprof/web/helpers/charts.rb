# frozen_string_literal: true

require "zlib"
require_relative "../treemap"
require_relative "icicles"

module Memprof
  class Web
    module Helpers
      # SVG pictures. Each part is a link, and has a title with its numbers.
      module Charts
        WIDTH = 1200
        BARS_HEIGHT = 160
        MAP_HEIGHT = 420
        LINE = 17 # pixels that a line of text needs
        NARROWEST = 24 # of a box with text, on the widest page
        LABELS = 12 # below bars
        STEPS = 4 # at most, of a value axis
        HUES = 8
        private_constant :WIDTH, :BARS_HEIGHT, :MAP_HEIGHT, :LINE, :NARROWEST, :LABELS, :STEPS, :HUES

        # One bar per row, in order.
        def bars(rows, value: :size, &name)
          most = rows.map { |row| row[value] }.max.to_i
          return Html.new if rows.size < 2 || most.zero?

          step = WIDTH.fdiv(rows.size)
          parts = rows.each_with_index.map do |row, index|
            one_bar(row, name.call(row), [index * step, step], row[value].fdiv(most))
          end
          each = rows.size.fdiv(LABELS).ceil
          labels = rows.each_slice(each).with_index.map do |(row), index|
            text_in(name.call(row), index * each * step, LINE + BARS_HEIGHT, each * step)
          end
          lines, values = axis(most, BARS_HEIGHT) { |size| Units.bytes(size) }
          picture([lines, parts, labels, values], BARS_HEIGHT + 2 * LINE, "chart", "Groups in order")
        end

        # A bar for each moment, from left to right; an unknown value has none. The block words a value.
        def bars_of_time(points, label)
          most = points.filter_map(&:last).max.to_i
          return Html.tag(:p, "Unknown.", class: "empty") if most.zero?

          step = WIDTH.fdiv(points.size)
          parts = points.each_with_index.filter_map do |(seconds, value), index|
            next if value.nil?

            height = (value.fdiv(most) * BARS_HEIGHT).round(1)
            title = "#{Time.at(seconds).utc.strftime("%F %T UTC")}: #{yield(value)}"
            Html.tag(:g, Html.tag(:title, title), Html.tag(:rect, x: across(index * step),
              y: (LINE + BARS_HEIGHT - height).round(1), width: across([step - 2, 1].max), height: height))
          end
          lines, values = axis(most, BARS_HEIGHT) { |value| yield(value) }
          times = [points.first, points.last].map { |seconds, _| Time.at(seconds).utc.strftime("%F %T UTC") }
          Html.join([picture([lines, parts, values], BARS_HEIGHT + LINE, "chart",
            "#{label}, at most #{yield(most)}", role: "img"), ends(*times)])
        end

        # What the ends of a time axis are.
        def ends(from, to, between = nil)
          Html.tag(:p, Html.tag(:span, from), (Html.tag(:span, between, class: "quiet") if between),
            Html.tag(:span, to), class: "axis")
        end

        # Retained sizes of the dominator tree's branches, level by level, as far as there is room.
        def treemap(branches, rest)
          rows_of_branches(branches)
          parts = branches.map { |branch| [branch[:sum], branch] }
          parts << [rest, nil] if rest.positive?
          boxes = Treemap.layout(parts, 0, 0, WIDTH, MAP_HEIGHT).map { |box, branch| block(box, branch) }
          picture(boxes, MAP_HEIGHT, "treemap", "Dominator tree as a treemap")
        end

        # Pages by how full they are, in a table cell.
        def fill_bars(counts)
          most = [counts.max, 1].max
          parts = counts.each_with_index.map do |pages, index|
            height = pages.zero? ? 0 : [(pages * 24).fdiv(most), 1].max.round(1)
            title = "#{index * 10} to #{index * 10 + 10} % used: #{count(pages)} pages"
            Html.tag(:g, Html.tag(:title, title),
              Html.tag(:rect, x: index * 12, y: 24 - height, width: 10, height: height))
          end
          texts = counts.map { |pages| count(pages) }.join(", ")
          Html.tag(:svg, parts, viewBox: "0 0 120 24", class: "fill", role: "img",
            aria_label: "Pages by share of used slots, in tenths: #{texts}")
        end

        # A bar for each heap, by name.
        def series(sizes, names)
          most = [sizes.max.to_i, 1].max
          rows = names.zip(sizes).flat_map do |name, size|
            figure = Html.tag(:span, Units.bytes(size), class: "figure")
            [Html.tag(:dt, name), Html.tag(:dd, bar(100.0 * size / most), figure)]
          end
          Html.tag(:dl, rows, class: "heap-bars")
        end

        private

        # A place or length of the picture, which is as wide as the page.
        def across(length) = "#{(100.0 * length / WIDTH).round(3)}%"

        # Lines at round values, and their labels; the lowest line is zero.
        def axis(most, height, unit: :bytes)
          step = round_step(most.fdiv(STEPS), unit)
          step = [step.ceil, 1].max if most.is_a?(Integer)
          lines = []
          texts = []
          (0..(most / step).floor).each do |number|
            y = (LINE + height - height * number * step / most).round(1)
            lines << Html.tag(:line, x1: 0, x2: "100%", y1: y, y2: y, class: number.zero? ? "zero" : "grid")
            value = step.is_a?(Integer) ? number * step : (number * step).round(12)
            texts << Html.tag(:text, yield(value), x: 2, y: (y - 3).round(1), class: "value")
          end
          [lines, texts.drop(1)]
        end

        # 1, 2 or 5, and zeros behind; sizes count in KiB, MiB and so on.
        def round_step(least, unit)
          base = unit == :bytes && least >= 1024 ? 1024**Math.log(least, 1024).floor : 1
          digit = 10.0**Math.log10(least / base).floor
          step = [1, 2, 5, 10].map { |number| number * digit }.find { |one| one * base >= least }
          base > 1 && step >= 1000 ? 1024 * base : step * base
        end

        # A time axis from left to right; the time outside the selected range is covered. The block words a
        # value of the upper part, which has this height.
        def picture_of_time(parts, height, seconds, range, role:, label:, most:, upper:, unit: :bytes,
          &words)
          if range
            from, to = range.values_at(:from, :to).map { |at| 1200 * [(at || seconds) / seconds, 1].min }
            parts += [[0, from], [to, 1200 - to]].map do |x, width|
              Html.tag(:rect, x: x.round(2), width: width.round(2), height: height, class: "outside")
            end
          end
          lines, values = axis(most, upper, unit: unit, &words)
          inner = Html.tag(:svg, parts, y: LINE, width: "100%", height: height, viewBox: "0 0 1200 #{height}",
            preserveAspectRatio: "none")
          drawing(Html.tag(:svg, lines, inner, values, class: "timeline", width: "100%",
            height: height + LINE, role: role, data_seconds: seconds, aria_label: label))
        end

        # A group rather than an image, so that its links are reachable.
        def picture(parts, height, style, label, role: "group")
          drawing(Html.tag(:svg, parts, width: "100%", height: height, class: style, role: role,
            aria_label: label))
        end

        def one_bar(row, name, (left, step), share)
          height = [(share * BARS_HEIGHT).round(1), row[:count].positive? ? 1 : 0].max
          title = "#{name}: #{Units.objects(row[:count])}, #{Units.bytes(row[:size])}"
          bar = Html.tag(:rect, x: across(left), y: (LINE + BARS_HEIGHT - height).round(1),
            width: across([step - 2, 1].max), height: height)
          linked(row[:where] && objects_url(row[:where]), Html.tag(:title, title), bar)
        end

        def block(box, branch)
          return box_of(box, "others", "rest", nil) unless branch

          one = branch[:count] == 1
          name = one ? branch[:text] : branch[:class]
          title = "#{one ? name : "#{Units.count(branch[:count])} #{name}"}: #{Units.bytes(branch[:sum])}"
          boxes = boxes_in(box, branch[:branches], branch[:sum]) { |part| part[:sum] }
            .map { |inner, part| block(inner, part) }
          Html.join([box_of(box, name, hue(branch[:class]), branch_url(branch), title), boxes])
        end

        # Boxes below the name of a box, if there is room: one for each row, sized by weight. The rest of the
        # box stays empty.
        def boxes_in(box, rows, whole, &weight)
          left, top, width, height = box
          return [] if rows.empty? || width < 60 || height < 3 * LINE

          parts = rows.map { |row| [weight.call(row), row] }
          parts << [whole - parts.sum(&:first), nil]
          Treemap.layout(parts, left + 2, top + LINE, width - 4, height - LINE - 2).select { |_, row| row }
        end

        def box_of(box, name, style, target, title = name)
          left, top, width, height = box.map { |length| length.round(1) }
          return if width < 1.5 || height < 1.5

          rect = Html.tag(:rect, x: across(left), y: top, width: across([width - 1, 0.5].max),
            height: [height - 1, 0.5].max, class: style)
          label = text_in(name, left, top, width) if height > LINE && width > NARROWEST
          linked(target, Html.tag(:title, title), rect, label)
        end

        def text_in(text, left, top, width)
          Html.tag(:svg, label_in(text.to_s, width), x: across(left), y: top, width: across(width),
            height: LINE)
        end

        def linked(target, *parts) = target ? Html.tag(:a, parts, href: target) : Html.tag(:g, parts)

        def branch_url(branch)
          return objects_url(Filter.root(branch[:class])) if branch[:address].nil?
          return object_url(branch[:address]) if branch[:count] == 1

          class_url(branch[:class])
        end

        # A class has the same color everywhere.
        def hue(name) = "h#{Zlib.crc32(name) % HUES}"
      end
    end
  end
end
