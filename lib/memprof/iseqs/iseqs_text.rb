# frozen_string_literal: true

require_relative "../paths"
require_relative "../table"
require_relative "../units"

module Memprof
  class Iseqs
    # Instruction sequences for people: a table of places, and one of files.
    class IseqsText
      # Maximum number of names per place; the rest is counted.
      SHOWN = 3
      NAME_WIDTH = 30
      private_constant :SHOWN, :NAME_WIDTH

      def initialize(iseqs, limit:)
        unless limit.is_a?(Integer) && limit.positive?
          raise ArgumentError, "limit must be an Integer above 0, not #{limit.inspect}"
        end

        @iseqs = iseqs
        @places = iseqs.by(:location)
        @files = iseqs.by(:file)
        @limit = limit
        @directory = Paths.working_directory
      end

      def to_s(color: false)
        paint = Paint.new(color)
        [
          "#{paint.call(headline, :bold)}\n", "#{places.to_text(paint)}#{rest(@places, "place")}",
          "#{files.to_text(paint)}#{rest(@files, "file")}"
        ].join("\n")
      end

      def to_markdown
        [
          "**#{headline}**\n",
          places.to_markdown, rest(@places, "place"), files.to_markdown, rest(@files, "file")
        ].reject(&:empty?).join("\n")
      end

      private

      def headline = "#{Units.plural(@iseqs.count, "instruction sequence")}, #{Units.bytes(@iseqs.memsize)}"

      def places
        table = columns.columns(:code, style: :cyan).columns(:defined_at)
        @places.first(@limit).each do |group|
          entry = group.entries.first
          table.row(*amounts(group), code(group), "#{Paths.short(entry.file, @directory)}:#{entry.line}")
        end
        table
      end

      def files
        table = columns.columns(:file)
        @files.first(@limit).each { |group| table.row(*amounts(group), Paths.short(group.name, @directory)) }
        table
      end

      def columns = Table.new.columns(:bytes, style: :red).columns(:number)

      def amounts(group) = [Units.bytes(group.memsize), Units.count(group.count)]

      # Blocks have the name of their method; code outside of methods has its label.
      def code(group)
        names = group.entries.map { |entry| entry.method_name || entry.label }.uniq
        shown = names.first(SHOWN).map { |name| Printable.fit(name, NAME_WIDTH) }
        more = names.size - shown.size
        more.zero? ? shown.join(", ") : "#{shown.join(", ")} and #{Units.count(more)} more"
      end

      def rest(groups, noun)
        more = groups.drop(@limit)
        return "" if more.empty?

        "#{Units.plural(more.size, "more #{noun}")} with #{Units.bytes(more.sum(&:memsize))}\n"
      end
    end
  end
end
