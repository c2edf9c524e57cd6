# frozen_string_literal: true

require_relative "ranked"
require_relative "tree_text"

module Memprof
  module Malloc
    class Recording
      # Functions of a recording for people: all of them, or some with their callers and callees.
      class FunctionsText
        include Ranked

        VALUES = TreeText::VALUES
        # The location of a function: after its name, or the whole text.
        PLACE = /(?<= \()[^()]+(?=\)\z)|\A[^()]+:\d+\z/
        private_constant :PLACE

        def initialize(summary, rows, value:, limit:, color:)
          @note = Units.sampled(summary[:sample])
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
          table = Table.new.columns(:callees, style: :red).columns(:share, :self_bytes, :share)
            .columns(:function, style: :cyan)
          ranked(@rows, table, @limit, @paint) do |row|
            [*amount(row[:bytes]), *amount(row[:self_bytes]), shown(row[:name])]
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

          table = Table.new.columns(:bytes, style: :red).columns(:share).name(heading, style: :cyan)
          ranked(rows, table, @limit, @paint) { |row| [*amount(row[:bytes]), shown(row[:name])] }
        end

        def amount(bytes) = [Units.bytes(bytes), Units.percent(bytes, @total)]

        def shown(name) = Printable.line(name.sub(PLACE) { |place| short(place) })
      end
    end
  end
end
