# frozen_string_literal: true

require_relative "../paint"
require_relative "../table"
require_relative "../units"

module Memprof
  class Memory
    # The structure of a text about memory: its `heading`, its `table`, and its `sentences`, a line each.
    module HeadedTable
      def to_s(color: false)
        paint = Paint.new(color)
        rest = sentences.map { |line| "#{line}\n" }.join
        "#{paint.call(heading, :bold)}\n\n#{table.to_text(paint)}\n#{rest}"
      end

      private

      def bytes(bytes) = Units.bytes(bytes)
    end

    # The memory of a process for people: a heading, a table, and further facts.
    class MemoryText
      include HeadedTable

      def initialize(memory)
        @memory = memory
      end

      def heading
        own = @memory.private_bytes
        "RSS #{bytes(@memory.rss)}#{", #{bytes(own)} of it private" if own}"
      end

      def sentences = [pss, swap, limit, allocator, sharing, unknown].compact

      private

      def table
        table = Table.new.columns(:memory, style: :red).columns(:share)
          .columns(:what, style: :cyan).columns(:accuracy)
        @memory.items.each do |item|
          table.row(bytes(item.bytes), Units.percent(item.bytes, @memory.rss), item.name, item.accuracy)
        end
        table
      end

      def pss
        "PSS: #{bytes(@memory.pss)} (shared pages split among processes)." if @memory.pss
      end

      def swap
        "Swapped out: #{bytes(@memory.swap)}." if @memory.swap.positive?
      end

      def limit
        return unless @memory.limit

        used = Units.percent(@memory.cgroup_used, @memory.limit)
        "Limit of the cgroup: #{bytes(@memory.limit)}, #{bytes(@memory.cgroup_used)} (#{used}) in use."
      end

      def allocator
        return unless @memory.allocator

        arenas = @memory.arenas
        in_use, free = %i[in_use free].map { |key| bytes(arenas.sum { |arena| arena[key] }) }
        "malloc (#{@memory.allocator}): #{in_use} in use and #{free} free in " \
          "#{Units.plural(arenas.size, "arena")}, resident or not."
      end

      # An unloaded memprof leaves only what the kernel knows.
      def unknown
        return if @memory.allocator || @memory.items.any? { |item| item.key.start_with?("slots") }

        "Parts of Ruby and malloc are unknown: the process has not loaded memprof/signal."
      end

      def sharing
        return unless @memory.sharing

        parent, shared, unshared, new = @memory.sharing.values_at(:parent, :shared, :unshared, :new)
        "Ruby's heap, forked from #{parent}: #{bytes(shared)} still shared, " \
          "#{bytes(unshared)} unshared since, #{bytes(new)} new."
      end
    end
  end
end
