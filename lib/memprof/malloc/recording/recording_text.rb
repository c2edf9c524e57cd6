# frozen_string_literal: true

require_relative "../../sparkline"
require_relative "ranked"

module Memprof
  module Malloc
    class Recording
      # A recording as tables for people.
      class RecordingText
        include Ranked

        # Heading, sort key, and its format.
        TABLES = [
          ["Live at the peak", :peak_bytes, :bytes], ["Live at the end", :leaked_bytes, :bytes],
          ["Most calls", :allocations, :count], ["Most temporary blocks", :temporary, :count]
        ].freeze
        private_constant :TABLES

        def initialize(summary, limit:, color:, markdown: false)
          @summary = summary
          @total = summary[:total]
          @limit = limit
          @paint = Paint.new(color)
          @markdown = markdown
        end

        def to_s
          sections = [head, *TABLES.map { |table| ranking(*table) }, sizes, timeline]
          sections.compact.join("\n")
        end

        private

        def head
          facts = [@paint.call(title, :bold), seconds(@summary[:ms]), Units.sampled(@summary[:sample])]
            .compact.join(", ")
          return "#{Table.code(facts)}\n\n#{[calls, peak, at_end, *warnings].join("  \n")}\n" if @markdown

          [facts, calls, peak, at_end, *warnings].join("\n") << "\n"
        end

        # A recording cut off within its first bytes has no process.
        def title
          return "malloc of an unknown process" if @summary[:pid].zero?

          "malloc of #{Printable.line(@summary[:command])}, process #{@summary[:pid]}"
        end

        def calls
          calls, bytes = @total.values_at(:allocations, :allocated_bytes)
          text = "#{Units.count(calls)} calls allocated #{Units.bytes(bytes)}"
          return text if @summary[:sample] || calls.zero?

          "#{text}, #{Units.percent(@total[:temporary], calls)} of the blocks were temporary"
        end

        def peak
          "Peak: #{Units.bytes(@total[:peak_bytes])} after #{seconds(@summary[:peak_ms])}, " \
            "RSS up to #{Units.bytes(@summary[:peak_rss])}"
        end

        def at_end
          "Live at the end: #{Units.bytes(@total[:leaked_bytes])} in #{Units.count(@total[:leaked])} blocks"
        end

        def warnings
          damaged = @summary[:damaged_at]
          missed = @summary[:missed]
          lines = []
          lines << "The file is damaged: nothing was read from byte #{damaged} on." if damaged
          is_open = !damaged && !@summary[:complete]
          lines << "The recording still runs, or its process was killed." if is_open
          lines << "#{Units.count(missed)} blocks were not recorded." if missed.positive?
          lines << suppressed if @summary[:suppressed].positive?
          lines
        end

        def suppressed
          blocks = Units.plural(@summary[:suppressed], "block")
          "Known leaks, not counted: #{Units.bytes(@summary[:suppressed_bytes])} in #{blocks}."
        end

        def ranking(heading, key, unit)
          rows = @summary[:locations].select { |row| row[key].positive? }
          return if rows.empty?

          table = Table.new.number(heading, style: :red).columns(:share, :calls).columns(:allocated)
            .columns(:site, style: :cyan)
          rows = rows.sort_by { |row| [-row[key], row[:location]] }
          ranked(rows, table, @limit, @paint) do |row|
            [Units.public_send(unit, row[key]), Units.percent(row[key], @total[key]),
              Units.count(row[:allocations]), Units.bytes(row[:allocated_bytes]), short(row[:location])]
          end
        end

        def sizes
          return if @summary[:sizes].empty?

          table = Table.new.columns(:up_to, :calls, :share, :allocated)
          @summary[:sizes].each do |row|
            table.row(Units.bytes(row[:up_to]), Units.count(row[:allocations]),
              Units.percent(row[:allocations], @total[:allocations]), Units.bytes(row[:allocated_bytes]))
          end
          drawn(table, @paint)
        end

        def timeline
          points = @summary[:timeline]
          return if points.size < 2

          { "Live" => :live_bytes, "RSS" => :rss }.map do |name, key|
            values = points.map { |point| point[key] }
            most = values.each_slice([values.size / 60, 1].max).map(&:max)
            "#{name.rjust(4)} #{Sparkline.of(most, width: 60)} up to #{Units.bytes(values.max)}\n"
          end.join.then { |lines| @markdown ? "```\n#{lines}```\n" : lines }
        end

        def seconds(milliseconds) = Units.seconds(milliseconds / 1000.0)
      end
    end
  end
end
