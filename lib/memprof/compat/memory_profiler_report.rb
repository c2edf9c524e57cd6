# frozen_string_literal: true

module Memprof
  module Compat
    # A report in the format of memory_profiler 1.1, line by line, so that scripts and people used to it can
    # read it. Our own sections come after it, and only on request.
    class MemoryProfilerReport
      OPTIONS = %i[
        retained_strings allocated_strings detailed_report scale_bytes normalize_paths methods ages
      ].freeze
      KINDS = %w[allocated retained].freeze
      METRICS = %w[memory objects].freeze
      NAMES = %w[gem file location class].freeze
      RULE = "-" * 35
      private_constant :KINDS, :METRICS, :NAMES, :RULE

      def initialize(report, color: false, retained_strings: nil, allocated_strings: nil,
        detailed_report: true, scale_bytes: false, normalize_paths: false, methods: false, ages: false)
        @report = report
        @paint = Paint.new(color)
        @string_limits = { "allocated" => allocated_strings, "retained" => retained_strings }
        @detailed = detailed_report != false # nil prints, too
        @scale = scale_bytes
        @normalize = normalize_paths
        @methods = methods
        @ages = ages
      end

      def print(io)
        @io = io
        totals
        details if @detailed
        sections(["method"]) if @methods
        ages if @ages
      end

      private

      def totals
        line "Total allocated: #{total(@report.total_allocated_memsize)} (#{@report.total_allocated} objects)"
        line "Total retained:  #{total(@report.total_retained_memsize)} (#{@report.total_retained} objects)"
      end

      def total(bytes) = @scale ? Units.decimal_bytes(bytes) : "#{bytes} bytes"

      def details
        sections(NAMES)
        line
        strings("allocated", @report.strings_allocated)
        strings("retained", @report.strings_retained)
      end

      def sections(names)
        KINDS.product(METRICS, names) do |kind, metric, name|
          title "#{kind} #{metric} by #{name}"
          groups = @report.public_send("#{kind}_#{metric}_by_#{name}")
          line "NO DATA" if groups.empty?
          groups.each { |group| entry(count(group[:count], metric), label(group[:data])) }
        end
      end

      def strings(kind, rows)
        limit = @string_limits.fetch(kind)
        return if rows.empty? || limit == 0

        title "#{kind.capitalize} String Report"
        rows = rows.first(limit) if limit
        rows.each do |value, locations|
          entry(locations.sum(&:last), @paint.call(value.inspect, :green))
          locations.sort_by { |location, count| [-count, location] }
            .each { |location, count| entry(count, label(location)) }
          line
        end
      end

      def ages
        title "freed objects by site"
        _, sites = @report.places(:freed, sort: "objects", limit: @report.top)
        line "NO DATA" if sites.empty?
        sites.sort_by { |site| [-site.freed_objects, site.location, site.class_name, site.method_name] }
          .each { |site| entry(site.freed_objects, freed(site)) }
      end

      def freed(site)
        place = site.method_name.empty? ? "" : " in #{site.method_name}"
        age = format("mean age %.1f, oldest %d", site.mean_age, site.max_age)
        Printable.line("#{label(site.location)} #{site.class_name}#{place}, #{age}")
      end

      def title(text)
        line
        line text
        line @paint.call(RULE, :cyan)
      end

      def entry(count, text)
        line "#{@paint.call(count.to_s.rjust(10), :blue)}  #{text}"
      end

      def count(number, metric) = @scale && metric == "memory" ? Units.decimal_bytes(number) : number

      def label(name) = Printable.line(@normalize ? Paths.normalize(name) : name)

      def line(text = "") = @io.write("#{text}\n")
    end
  end
end
