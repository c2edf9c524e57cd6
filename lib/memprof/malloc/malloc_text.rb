# frozen_string_literal: true

require_relative "../paths"
require_relative "../table"
require_relative "../units"

module Memprof
  module Malloc
    # A recording of malloc as a table for people, most live bytes first.
    class MallocText
      Row = Struct.new(:name, :live_bytes, :live, :total, :allocations)
      private_constant :Row

      def initialize(limit:)
        @limit = limit
        @rows = rows.sort_by { |row| [-row.live_bytes, -row.total, row.name] }
      end

      def to_s(color: false)
        paint = Paint.new(color)
        "#{paint.call(headline, :bold)}\n\n#{table.to_text(paint)}#{rest}"
      end

      private

      def rows
        Malloc.sites.map do |name, (allocations, total, *, live, live_bytes)|
          Row.new(name, live_bytes, live, total, allocations)
        end
      end

      def headline
        live = "#{Units.bytes(@rows.sum(&:live_bytes))} live in #{Units.plural(@rows.sum(&:live), "block")}"
        calls = Units.count(@rows.sum(&:allocations))
        numbers = "#{live} of #{Units.bytes(@rows.sum(&:total))} allocated by #{calls} calls of malloc"
        [numbers, Units.sampled(Native::Malloc.sample)].compact.join(", ")
      end

      def table
        table = Table.new.columns(:live, style: :red).columns(:blocks, :allocated, :calls)
          .columns(:site, style: :cyan)
        directory = Paths.working_directory
        @rows.first(@limit).each do |row|
          table.row(Units.bytes(row.live_bytes), Units.count(row.live), Units.bytes(row.total),
            Units.count(row.allocations), Paths.short(row.name, directory))
        end
        table
      end

      def rest
        more = @rows.drop(@limit)
        return "" if more.empty?

        "#{Units.count(more.size)} more with #{Units.bytes(more.sum(&:live_bytes))} live\n"
      end
    end
  end
end
