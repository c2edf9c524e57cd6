# frozen_string_literal: true

require_relative "../paths"
require_relative "../sparkline"
require_relative "../table"
require_relative "../units"

module Memprof
  class Growth
    # Growth for people: one line per site, with its slope and a sparkline of its counts.
    class GrowthText
      CLASS_WIDTH = 40
      private_constant :CLASS_WIDTH

      def initialize(growth, unicode:)
        @growth = growth
        @unicode = unicode
        @directory = Paths.working_directory
      end

      def to_s(color: false)
        paint = Paint.new(color)
        return "#{paint.call(headline, :green)}\n" if @growth.empty?

        "#{paint.call(headline, :bold)}\n\n#{table.to_text(paint)}#{holders}"
      end

      def to_markdown
        return "#{headline}\n" if @growth.empty?

        "**#{headline}**\n\n#{table.to_markdown}#{holders("- ")}"
      end

      private

      def headline
        return "Nothing grows over #{@growth.runs} runs." if @growth.empty?

        verb = @growth.one? ? "site grows" : "sites grow"
        "#{Units.count(@growth.count)} #{verb} over #{@growth.runs} runs."
      end

      # One line for each site whose objects have a known retainer.
      def holders(bullet = "")
        lines = @growth.filter_map(&:holder).map { |holder| "#{bullet}#{holder}\n" }
        lines.any? ? "\n#{lines.join}" : ""
      end

      def table
        table = Table.new
        table.columns(:objects_per_run, style: :red).columns(:least, :bytes_per_run, :live_objects)
        table.columns(:runs, style: :yellow).columns(:class, style: :cyan).columns(:site)
        @growth.each { |site| table.row(*numbers(site), *names(site)) }
        table
      end

      def numbers(site)
        bytes = site.bytes ? "+#{Units.bytes(site.bytes.round)}" : "-"
        [rate(site.slope), rate(site.low), bytes, Units.count(site.counts.last)]
      end

      def names(site)
        [
          Sparkline.of(site.contents || site.counts, unicode: @unicode),
          Printable.fit(site.class_name, CLASS_WIDTH),
          Paths.short_location(site, @directory)
        ]
      end

      # A leak of one object in a hundred runs is a leak, not `+0.0`.
      def rate(objects)
        return "-" if objects.zero?
        return "+#{Units.count(objects.to_i)}" if objects >= 1 && objects == objects.to_i

        format(objects.abs < 0.1 ? "%+.3f" : "%+.1f", objects)
      end
    end
  end
end
