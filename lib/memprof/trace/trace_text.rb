# frozen_string_literal: true

require_relative "../cell"
require_relative "../cli/listing"
require_relative "trace_text/work"

module Memprof
  class Trace
    # A report for people: totals, calls, allocated classes and their locations, SQL statements and rendered
    # templates. Empty sections are left out.
    class TraceText
      # Rows of a table.
      LISTED = 10
      private_constant :LISTED

      # Takes a report or the record of a request, as plain Hashes, and its duration.
      def initialize(record, seconds = nil)
        request = record.key?("tracers")
        @tracers = request ? record["tracers"] : record
        @request = record if request
        @seconds = request ? record["time"] : seconds
      end

      def to_s(color: false, width: nil)
        paint = Paint.new(color)
        parts = ["#{paint.call(headline, :bold)}\n"]
        listings = [Work.new(@tracers).listing, classes, lines, *statements, *templates]
        parts += listings.filter_map do |listing, more|
          listing.to_text(paint, width) + more_line(more.to_i) unless listing.empty?
        end
        parts.join("\n")
      end

      private

      def headline
        parts = []
        parts << request if @request
        parts << [time, cpu].compact.join(", of that ") if time || cpu
        objects = part("objects")
        parts << "#{Units.objects(*objects.values_at("created", "bytes"))} allocated" if objects["created"]
        parts.empty? ? "Nothing traced" : parts.join("; ")
      end

      def request
        rails, env, response = @request.values_at("rails", "request", "response")
        action = "#{rails["controller"]}##{rails["action"]}" if rails
        path = env ? env.values_at("REQUEST_METHOD", "PATH_INFO").compact.join(" ") : "block"
        [action, path, "status #{response&.fetch("code", nil) || "none"}"].compact.join(", ")
      end

      def time = @seconds && Cell.seconds(@seconds)

      def cpu
        resources = part("resources")
        return unless resources["utime"]

        "#{Cell.seconds(resources["utime"] + resources["stime"])} CPU"
      end

      def part(name)
        part = @tracers[name]
        part.is_a?(Hash) && !part.key?("error") ? part : {}
      end

      def more_line(more)
        more.positive? ? "... and #{Units.count(more)} more\n" : ""
      end

      def classes
        listing = CLI::Listing.new.columns(:count, as: :objects).columns(:bytes, :class)
        all = part("objects").fetch("classes", {})
        all.first(LISTED).each { |name, made| listing.row(made["count"], made["bytes"], name) }
        [listing, all.size - LISTED]
      end

      def lines
        listing = CLI::Listing.new.columns(:count, as: :objects).columns(:bytes)
          .columns(:class).columns(:site, as: :location)
        all = part("objects").fetch("lines", [])
        return listing unless all.is_a?(Array)

        all.each { |line| listing.row(*line.values_at("count", "bytes", "class", "location")) }
        listing
      end

      def statements
        all = part("sql").fetch("statements", [])
        listing = CLI::Listing.new.columns(:n_plus_one, kind: :name).columns(:queries)
          .columns(:seconds, as: :time).columns(:slowest, spare: true)
          .columns(:sql, :caller)
        all.first(LISTED).each do |one|
          mark = "N+1" if one["n_plus_one"]
          listing.row(mark, *one.values_at("queries", "time", "slowest", "sql", "caller"))
        end
        [[listing, all.size - LISTED]]
      end

      def templates
        views = part("views")
        %w[templates serializers].map do |kind|
          listing = CLI::Listing.new.columns(:rendered, as: :calls).columns(:seconds, as: :time)
            .column(kind.capitalize.chomp("s"), :place, :name)
          all = views.fetch(kind, {}).sort_by { |_, one| -one["time"] }
          all.first(LISTED).each { |name, one| listing.row(one["calls"], one["time"], name) }
          [listing, all.size - LISTED]
        end
      end
    end
  end
end
