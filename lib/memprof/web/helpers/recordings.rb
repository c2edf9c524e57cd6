# frozen_string_literal: true

require_relative "../../units"

module Memprof
  class Web
    module Helpers
      # Malloc recordings: consumption over time as a picture, and callers as a tree.
      module Recordings
        HIGH = 170 # height of the bytes, in pixels
        CALLS = 26 # height of the calls, below
        private_constant :HIGH, :CALLS

        # A bar for each interval: its maximum of live bytes; RSS is a line, calls are below.
        def consumption(timeline, range = nil)
          parts = timeline[:parts]
          scale = { bytes: [parts.flat_map { |part| part.values_at(:live, :rss) }.max, 1].max,
                    calls: [parts.map { |part| part[:calls] }.max, 1].max, width: 1200.0 / parts.size }
          drawn = runs(parts).map { |run| consumption_bar(*run, scale) }
          drawn << rss_line(parts, scale)
          picture_of_time(drawn, HIGH + CALLS, timeline[:seconds], range, role: "img",
            label: "Live bytes, RSS and calls over time", most: scale[:bytes], upper: HIGH) { |size|
            Units.bytes(size)
          }
        end

        def estimates(sample)
          Html.tag(:p, "All numbers are estimates: they come from samples, one every ",
            "#{Units.bytes(sample)} on average.", class: "note") if sample
        end

        # Rows of a tree of stacks. A frame with all bytes of its parent shares the parent's branch.
        def stack_tree(rows, whole)
          branches = rows.slice_when do |above, row|
            row[:level] <= above[:level] || row[:bytes] < above[:bytes]
          end
          rows_of_picture(rows) do |t|
            t.columns(:level, :bytes)
              .columns(:frame) { |row| frame_name(row) }.columns(:site, as: :location)
          end
          Html.tag(:ul, stack_branches(branches.to_a, whole))
        end

        def frame_name(row)
          place = row[:module] ? native_place(row) : Paths.short(row[:location])
          name = row[:method] || row[:function]
          name ? "#{name} (#{place})" : place
        end

        private

        # Branches deeper than the first one are nested below it.
        def stack_branches(branches, whole)
          groups = branches.slice_when { |_, branch| branch.first[:level] <= branches.first.first[:level] }
          groups.map { |(first, *below)| Html.tag(:li, stack_branch(first, below, whole)) }
        end

        def stack_branch(frames, below, whole)
          size = frames.first[:bytes]
          line = Html.join([Html.tag(:span, bytes(size), class: "number"), bar(100.0 * size / [whole, 1].max),
            stack_frame(frames.first)])
          rest = frames.drop(1).map { |frame| Html.tag(:div, stack_frame(frame), class: "called") }
          return Html.tag(:div, line, rest, class: "leaf") if below.empty?

          Html.tag(:details, Html.tag(:summary, line), rest,
            Html.tag(:ul, stack_branches(below, whole)), open: "open")
        end

        def stack_frame(row) = Html.tag(:span, frame_name(row), class: "place", title: row[:location])

        def native_place(row)
          object = File.basename(row[:module])
          return format("%s+0x%x", object, row[:offset]) unless row[:function]

          row[:file] ? "#{object}, #{File.basename(row[:file])}:#{row[:line]}" : object
        end

        # Runs of equal intervals, each with the index of the first one and their number.
        def runs(parts)
          alike = parts.each_with_index.chunk_while { |(part, _), (following, _)| part == following }
          alike.map { |run| [*run.first, run.size] }
        end

        def consumption_bar(part, index, size, scale)
          x = (index * scale[:width]).round(1)
          whole = (size * scale[:width]).round(1)
          width = [whole - 1, 1].max.round(1)
          high = (HIGH * part[:live].fdiv(scale[:bytes])).round(1)
          many = ((CALLS - 4) * part[:calls].fdiv(scale[:calls])).round(1)
          words = "#{Units.bytes(part[:live])} live, RSS #{Units.bytes(part[:rss])}, " \
            "#{plural(part[:calls] * size, "call")}"
          Html.tag(:g, Html.tag(:title, words),
            Html.tag(:rect, x: x, y: 0, width: whole, height: HIGH, class: "hover"),
            Html.tag(:rect, x: x, y: (HIGH - high).round(1), width: width, height: high, class: "most"),
            Html.tag(:rect, x: x, y: HIGH + 4, width: width, height: many, class: "many"))
        end

        def rss_line(parts, scale)
          points = runs(parts.map { |part| part[:rss] }).flat_map do |rss, index, size|
            y = (HIGH - HIGH * rss.fdiv(scale[:bytes])).round(1)
            [index, index + size].map { |place| "#{(place * scale[:width]).round(1)},#{y}" }
          end
          Html.tag(:polyline, points: points.join(" "), class: "rss")
        end
      end
    end
  end
end
