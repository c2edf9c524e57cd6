# frozen_string_literal: true

require_relative "ranked"

module Memprof
  module Malloc
    class Recording
      # The stacks of a recording as a tree for people.
      class TreeText
        include Ranked

        VALUES = {
          live: "Live", peak: "Live at the peak", leaked: "Live at the end", allocated: "Allocated"
        }.freeze
        DIRECTIONS = {
          top_down: "from the outermost frames down", bottom_up: "from allocating functions to their callers"
        }.freeze
        private_constant :DIRECTIONS

        def initialize(summary, rows, direction:, value:, min:, color:)
          @summary = summary
          @rows = rows
          @direction = direction
          @value = value
          @min = min
          @paint = Paint.new(color)
        end

        def to_s
          return "#{heading}Nothing.\n" if total.zero?

          before = nil
          lines = @rows.map { |row| line(row, before).tap { before = row } }
          "#{heading}#{lines.join}#{note}"
        end

        private

        def total = @summary[:total].fetch(:"#{@value}_bytes")

        def heading
          title = ["#{VALUES.fetch(@value)}: #{Units.bytes(total)}", DIRECTIONS.fetch(@direction),
            Units.sampled(@summary[:sample])].compact.join(", ")
          "#{@paint.call(title, :bold)}\n"
        end

        # A frame with the same bytes as the one above it needs no numbers.
        def line(row, before)
          is_same = before && row[:level] > before[:level] && row[:bytes] == before[:bytes]
          bytes = is_same ? "" : Units.bytes(row[:bytes])
          share = is_same ? "" : Units.percent(row[:bytes], total)
          numbers = "#{@paint.call(bytes.rjust(11), :red)} #{share.rjust(6)}"
          "#{numbers}  #{"  " * row[:depth]}#{@paint.call(frame(row), :cyan)}\n"
        end

        def frame(row) = Printable.line(row[:module] ? native(row) : ruby(row))

        def ruby(row)
          location = short(row[:location])
          row[:method] ? "#{row[:method]} (#{location})" : location
        end

        def native(row)
          object = File.basename(row[:module])
          return format("%s+0x%x", object, row[:offset]) unless row[:function]

          source = ", #{File.basename(row[:file])}:#{row[:line]}" if row[:file]
          "#{row[:function]} (#{object}#{source})"
        end

        def note
          least = "Not shown: frames with less than #{Units.percent(@min, 1)}.\n"
          return least if @summary[:callers]

          "#{least}The recording has no callers: it has one frame of each stack.\n"
        end
      end
    end
  end
end
