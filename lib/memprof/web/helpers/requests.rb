# frozen_string_literal: true

module Memprof
  class Web
    module Helpers
      # Traced requests: their costs in words, a timeline, their SQL statements and the lines that allocated
      # most objects.
      module Requests
        HEIGHT = 130 # height of the costs, in pixels
        STRIP = 26 # height of the request counts, below
        # Characters of a statement that are shown; the tooltip has the rest.
        SQL = 240
        private_constant :HEIGHT, :STRIP, :SQL

        def cost(kind, value)
          unit = unit_of_cost(kind)
          Cell.text(unit == :seconds ? value : value&.round, unit)
        end

        def unit_of_cost(kind) = Native.unit_of_cost(kind.to_s).to_sym

        def request_url(line) = url(page.within("/requests/#{line}"))

        # A bar for each interval: as high as its most expensive request, and a link to that one.
        def timeline(timeline, kind, range = nil)
          parts = timeline[:parts]
          scale = { max: [parts.map { |part| part[:max] }.max, 1e-12].max,
                    requests: [parts.map { |part| part[:requests] }.max, 1].max, width: 1200.0 / parts.size }
          bars = parts.each_with_index.map { |part, index| time_bar(part, index, kind, scale) }
          picture_of_time(bars, HEIGHT + STRIP, timeline[:seconds] * parts.size, range, role: "group",
            label: "Highest #{kind} of a request over time", most: scale[:max], upper: HEIGHT,
            unit: unit_of_cost(kind)) { |value| cost(kind, value) }
        end

        # Nested tables, as lists.
        def nested(value)
          return Html.escape(value.nil? ? "none" : value) unless value.is_a?(Hash) || value.is_a?(Array)
          return Html.tag(:span, "nothing", class: "quiet") if value.empty?

          pairs = value.is_a?(Hash) ? value : value.each_with_index.to_h { |inner, index| [index + 1, inner] }
          parts = pairs.map { |key, inner| Html.join([Html.tag(:dt, key), Html.tag(:dd, nested(inner))]) }
          Html.tag(:dl, parts, class: "facts")
        end

        # SQL statements of one request, or of all.
        def statements(rows, more = 0)
          return Html.new if rows.empty?

          all = rows.first.key?(:requests)
          listed = table(rows, name: "SQL statements") do |t|
            t.columns(:n_plus_one, kind: (:name unless all)) { |row| repeated(row[:n_plus_one]) }
            t.columns(:queries)
            t.columns(:requests) if all
            t.columns(:seconds) { |row| duration(row[:time]) }
              .columns(:slowest) { |row| duration(row[:slowest]) }
              .columns(:sql) { |row| short(Printable.line(row[:sql]), SQL) }
              .columns(:caller) { |row| short(Printable.line(row[:caller])) }
          end
          rest = Html.tag(:p, "#{count(more)} more statements") if more.positive?
          Html.tag(:section, Html.tag(:h2, "SQL statements"), listed, rest)
        end

        # The lines of one request, if they were traced.
        def allocating_lines(record)
          objects = (record["tracers"] || record)["objects"] if record.is_a?(Hash)
          lines = objects["lines"] if objects.is_a?(Hash)
          return Html.new unless lines.is_a?(Array)

          lines_table(lines.grep(Hash).map do |line|
            { location: line["location"], class: line["class"], objects: line["count"].to_i,
              bytes: line["bytes"].to_i }
          end)
        end

        def lines_table(rows, more = 0)
          return Html.new if rows.empty?

          listed = table(rows, name: "Lines that allocate most objects") do |t|
            t.columns(:count, as: :objects).columns(:bytes)
            t.columns(:requests) if rows.first.key?(:requests)
            t.columns(:class) { |row| short(Printable.line(row[:class])) }
              .columns(:site) { |row| short(Printable.line(row[:location])) }
          end
          rest = Html.tag(:p, "#{count(more)} more lines") if more.positive?
          Html.tag(:section, Html.tag(:h2, "Lines that allocate the most objects"), listed, rest)
        end

        private

        def time_bar(part, index, kind, scale)
          return if part[:requests].zero?

          x = (index * scale[:width]).round(2)
          width = [scale[:width] - 1, 1].max.round(2)
          high = [HEIGHT * part[:max] / scale[:max], 1].max.round(2)
          many = [(STRIP - 4) * part[:requests].fdiv(scale[:requests]), 1].max.round(2)
          words = "#{plural(part[:requests], "request")}, at most #{cost(kind, part[:max])}"
          boxes = [
            Html.tag(:title, words),
            Html.tag(:rect, x: x, y: (HEIGHT - high).round(2), width: width, height: high, class: "most"),
            Html.tag(:rect, x: x, y: HEIGHT + 4, width: width, height: many, class: "many")
          ]
          Html.tag(:a, boxes, href: request_url(part[:line]), aria_label: words)
        end

        # The number of requests, or whether it happened in this one.
        def repeated(times)
          times.is_a?(Integer) ? (count(times) if times.positive?).to_s : (times ? "N+1" : "")
        end
      end
    end
  end
end
