# frozen_string_literal: true

require_relative "../../paint"
require_relative "../../paths"
require_relative "../../printable"
require_relative "../../table"
require_relative "../../units"
require_relative "../estimates"
require_relative "tree_text"

module Memprof
  module Malloc
    class Recording
      # Functions of a recording for people: all of them, or some with who called them and what they called.
      class FunctionsText
        VALUES = TreeText::VALUES
        # Where a function is: behind its name, or all of it.
        PLACE = /(?<= \()[^()]+(?=\)\z)|\A[^()]+:\d+\z/
        private_constant :PLACE

        def initialize(summary, rows, value:, limit:, color:)
          @note = Estimates.note(summary[:sample])
          @total = summary[:total].fetch(:"#{value}_bytes")
          @rows = rows
          @value = value
          @limit = limit
          @paint = Paint.new(color)
        end

        def to_s
          return "#{@paint.call(heading, :bold)}\nNothing.\n" if @rows.empty?
          return @rows.map { |row| one(row) }.join("\n") if @rows.first[:callers]

          "#{@paint.call(heading, :bold)}\n#{all}"
        end

        private

        def heading
          ["#{VALUES.fetch(@value)}: #{Units.bytes(@total)}, by function", @note].compact.join(", ")
        end

        def all
          table = Table.new.number("With callees", style: :red).number("Share").number("Self").number("Share")
            .name("Function", style: :cyan)
          cut(@rows, table) do |row|
            table.row(*amount(row[:bytes]), *amount(row[:self_bytes]), shown(row[:name]))
          end
        end

        def one(row)
          amounts = "#{VALUES.fetch(@value).downcase} #{Units.bytes(row[:bytes])}, " \
            "#{Units.bytes(row[:self_bytes])} of it allocated by itself"
          title = ["#{shown(row[:name])}: #{amounts}", @note].compact.join(", ")
          sides = [beside(row[:callers], "Called by"), beside(row[:callees], "Calls")].compact
          ["#{@paint.call(title, :bold)}\n", *sides].join("\n")
        end

        def beside(rows, heading)
          return if rows.empty?

          table = Table.new.number("Bytes", style: :red).number("Share").name(heading, style: :cyan)
          cut(rows, table) { |row| table.row(*amount(row[:bytes]), shown(row[:name])) }
        end

        def cut(rows, table, &row)
          rows.first(@limit).each(&row)
          more = rows.size - @limit
          table.to_text(@paint) + (more.positive? ? "#{Units.count(more)} more\n" : "")
        end

        def amount(bytes) = [Units.bytes(bytes), Units.percent(bytes, @total)]

        def shown(name)
          @directory ||= Paths.working_directory
          Printable.line(name.sub(PLACE) { |place| Paths.short(place, @directory) })
        end
      end
    end
  end
end
