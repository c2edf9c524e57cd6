# frozen_string_literal: true

require_relative "../cell"
require_relative "../cli/listing"

module Memprof
  class Trace
    # A report for people: totals, calls, allocated classes and their locations, SQL statements and rendered
    # templates. Empty sections are left out.
    class TraceText
      # The counts of tracers, one row each: calls, their time, and the most frequent kinds.
      class Work
        NAMES = {
          "gc" => "GC", "fd" => "I/O", "dns" => "DNS", "memory" => "malloc", "views" => "Views",
          "sql" => "SQL", "mysql" => "MySQL", "postgres" => "PostgreSQL", "sqlite" => "SQLite",
          "memcache" => "Memcache", "redis" => "Redis", "http" => "HTTP", "threads" => "Threads"
        }.freeze
        # Shown elsewhere.
        ELSEWHERE = %w[objects resources].freeze
        # Keys that distinguish a tracer's calls; in other tracers, the function does.
        KINDS = %w[types commands hosts].freeze
        CALLS = %w[calls queries].freeze
        # Their queries are counted in "sql", too, if Ruby made them.
        DATABASES = %w[mysql postgres sqlite].freeze
        # Sums over functions that tracers report as well.
        SUMS = %w[ruby other].freeze
        LISTED = 4
        private_constant :NAMES, :ELSEWHERE, :KINDS, :CALLS, :DATABASES, :SUMS, :LISTED

        def initialize(tracers)
          @tracers = tracers
        end

        def listing
          listing = CLI::Listing.new.columns(:work, as: :tracer).columns(:calls)
            .columns(:seconds, as: :time).columns(:kinds)
          @tracers.each do |name, report|
            next if ELSEWHERE.include?(name) || !report.is_a?(Hash) || report.empty?
            next if DATABASES.include?(name) && in_sql?

            row = row(name, report)
            listing.row(NAMES.fetch(name, name), *row) unless row.all?(nil)
          end
          listing
        end

        private

        def row(name, report)
          return [nil, nil, report["error"].to_s] if report.key?("error")

          case name
          when "gc" then collections(report)
          when "threads" then [nil, nil, threads(report)]
          when "sql" then sql(report)
          else counted(report) || [nil, nil, numbers(report)]
          end
        end

        # Queries are shown once, with the kinds that the tracer of the database knows.
        def sql(report)
          kinds = databases.filter_map do |name, database|
            "#{NAMES.fetch(name)}: #{counted(database).last}" if in_sql? && counted(database)&.last
          end
          [report["queries"], report["time"], (kinds.join("; ") if kinds.any?)]
        end

        def databases = @tracers.slice(*DATABASES).select { |_, report| report.is_a?(Hash) }

        # Whether no database had more queries than "sql" has: none was made by C code alone.
        def in_sql?
          counts = databases.map { |_, report| report["queries"] }.grep(Integer)
          counts.any? && counts.sum <= @tracers["sql"].to_h["queries"].to_i
        end

        def collections(report)
          return [nil] * 3 unless report["calls"].to_i.positive?

          sizes = "#{report["major"]} major, #{report["minor"]} minor"
          [report["calls"], report["time"], "#{sizes}; by #{report["reasons"].keys.join(", ")}"]
        end

        def threads(report)
          parts = []
          parts << "#{Units.plural(report["created"], "thread")} created" if report["created"].to_i.positive?
          if report["gvl_waits"].to_i.positive?
            waits = Units.plural(report["gvl_waits"], "wait")
            parts << "#{waits} for the GVL: #{Units.short_seconds(report["gvl_wait_time"])}"
          end
          parts.join("; ") unless parts.empty?
        end

        def counted(report)
          own = CALLS.find { |key| report[key].is_a?(Integer) }
          parts = own ? report.values_at(*KINDS).grep(Hash).first || {} : report.except(*SUMS)
          parts = parts.select { |_, part| part.is_a?(Hash) && calls(part) }
          return if own.nil? && parts.empty?

          calls = own ? report[own] : parts.sum { |_, part| calls(part) }
          time = own ? report["time"] : times(parts)
          [calls, time, kinds(parts)]
        end

        def calls(part) = part.values_at(*CALLS).grep(Integer).first

        def times(parts)
          times = parts.filter_map { |_, part| part["time"] }
          times.sum unless times.empty?
        end

        def kinds(parts)
          return if parts.empty?

          sorted = parts.sort_by { |_, part| -calls(part) }
          named = sorted.first(LISTED).map do |name, part|
            "#{name} #{Units.count(calls(part))}#{bytes(part)}"
          end
          named << "..." if sorted.size > LISTED
          named.join(", ")
        end

        def bytes(part)
          size = part["actual"] || part["requested"]
          " (#{Units.bytes(size)})" if size.is_a?(Integer) && size.positive?
        end

        # The report of a tracer that the program defines.
        def numbers(report)
          report.map { |key, value| "#{key} #{value.is_a?(Integer) ? Units.count(value) : value}" }.join(", ")
        end
      end
      private_constant :Work

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

      def time = @seconds && Units.short_seconds(@seconds)

      def cpu
        resources = part("resources")
        return unless resources["utime"]

        "#{Units.short_seconds(resources["utime"] + resources["stime"])} CPU"
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
