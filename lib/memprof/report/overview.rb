# frozen_string_literal: true

require_relative "../table"

module Memprof
  class Report
    # The content of memprof's own presentations of a report: a headline, the facts of the run, a table of
    # retained objects and one of allocations. Text and Markdown print the `head`, the state when memory was
    # `largest`, and a `section` for each table.
    class Overview
      CLASS_WIDTH = 40
      CALLERS = 4
      SHARES = 5
      SHARE_TO_EXPLAIN = 0.05
      # A C method that was not called by Ruby code.
      NO_FILE = "(no name):"
      # See Support.warn_of_lost_hook.
      INCOMPLETE = "incomplete: tracking was off for a while because of a Ractor (Bug #19112 or #18464)"
      private_constant :CLASS_WIDTH, :CALLERS, :SHARES, :SHARE_TO_EXPLAIN, :NO_FILE, :INCOMPLETE

      def initialize(report, limit:)
        @report = report
        @listed = report.listed
        @limit = limit
        @directory = Paths.working_directory
      end

      def to_s
        return head if @report.total_allocated.zero?

        parts = [section(:retained, retained), section(:allocated, allocated)]
        parts.unshift(largest) if @report.peak
        [head, *parts].join("\n")
      end

      # Totals; retained objects come first, since they may be leaks.
      def headline
        return "Nothing was allocated." if @report.total_allocated.zero?

        freed = @report.totals.fetch("freed")
        "#{Units.objects(@report.total_retained, @report.total_retained_memsize)} retained of " \
          "#{Units.objects(@report.total_allocated, @report.total_allocated_memsize)} allocated; " \
          "#{Units.objects(freed["objects"], freed["bytes"])} freed"
      end

      # Facts of the run.
      def facts
        meta = @report.meta
        duration, gc_runs = meta.values_at("duration", "gc_count")
        [
          meta["runtime"].to_s[/\A\S+(?: [\d.]+)?/], (Units.seconds(duration) if duration),
          (Units.plural(gc_runs, "GC run") if gc_runs), sampling(meta["sample"].to_i),
          ("#{meta["stack"]} frames per object" if meta["stack"].to_i > 1), (INCOMPLETE if meta["incomplete"])
        ].compact.join(", ")
      end

      # A line on the VM's own objects, which the tables leave out; nil if there were none.
      def internal
        retained, allocated = %w[retained allocated].map do |kind|
          %w[objects bytes].map { |unit| @report.totals[kind][unit] - @listed.totals[kind][unit] }
        end
        return unless allocated.first.positive?

        "Excluded: #{Units.plural(allocated.first, "VM-internal object")} " \
          "(#{Units.bytes(allocated.last)}), #{Units.count(retained.first)} of them " \
          "(#{Units.bytes(retained.last)}) retained"
      end

      # Shown in place of a table without rows.
      def nothing(kind) = "Nothing #{"else " if @report.totals[kind.to_s]["objects"].positive?}is #{kind}."

      # The state of the process when memory was largest.
      def peak_facts
        peak = @report.peak
        parts = { "RSS" => peak[:resident], "malloc in use" => peak[:malloc], "slots" => peak[:slots] }
        parts = parts.compact.map { |name, bytes| "#{name} #{Units.bytes(bytes)}" }
        ever = "; peak RSS #{Units.bytes(peak[:resident_ever])}" if peak[:resident_ever]
        "Peak after #{Units.seconds(peak[:time])}: #{Units.objects(peak[:objects], peak[:bytes])}; " \
          "#{parts.join(", ")}#{ever}"
      end

      # Sites with objects at the memory peak, most bytes first.
      def peak
        table = Table.new.columns(:at_peak, style: :red).columns(:count, :allocated)
        sites(table, :peak, @report.peak[:bytes]) { |site| [Units.bytes(site.allocated_bytes)] }
      end

      # Sites with retained objects, most bytes first; empty if there are none.
      def retained
        table = Table.new.columns(:retained_bytes, style: :red).columns(:count, :survived_percent)
        sites(table, :retained, @listed.total_retained_memsize) do |site|
          [Units.percent(site.retained_objects, site.allocated_objects)]
        end
      end

      # Sites that allocated most, most bytes first.
      def allocated
        table = Table.new.columns(:allocated, style: :yellow).columns(:count, :freed_percent, :age_at_free)
        sites(table, :allocated, @listed.total_allocated_memsize) do |site|
          [Units.percent(site.freed_objects, site.allocated_objects), age(site)]
        end
      end

      # The shares of a total: `{"class" => "String 60 %, Hash 20 %", "gem" => ...}`.
      def shares(kind)
        total = kind == :retained ? @listed.total_retained_memsize : @listed.total_allocated_memsize
        %w[class gem].to_h { |by| [by, share(@listed.public_send("#{kind}_memory_by_#{by}"), total)] }
      end

      # A line on the sites that a table leaves out, or nil.
      def rest(kind)
        left = places(kind).first - @limit
        Units.plural(left, "more site") if left.positive?
      end

      private

      def places(kind) = @listed.places(kind, limit: @limit)

      # Adds the sites; the block returns the cells between their objects and their class.
      def sites(table, kind, total)
        table.columns(:class, style: :cyan).columns(:site)
        places(kind).last.each do |site|
          bytes, objects = %w[bytes objects].map { |unit| site.public_send("#{kind}_#{unit}") }
          table.row(Units.bytes(bytes), Units.count(objects), *yield(site), *names(site),
            notes: callers(site, bytes.fdiv(total)))
        end
        table
      end

      def names(site)
        place = Paths.short("#{site.file}:#{site.line}", @directory)
        place += " in #{site.method_name}" unless site.method_name.empty?
        [Printable.fit(site.class_name, CLASS_WIDTH), place]
      end

      # Lines with the callers; only for sites that matter, or they would clutter the table.
      def callers(site, share)
        return [] if share < SHARE_TO_EXPLAIN

        frames = site.callers.reject { |frame| frame.start_with?(NO_FILE) || Paths.own?(frame) }
        notes = frames.first(CALLERS).map do |frame|
          "from #{Paths.short(frame, @directory).sub(":in ", " in ")}"
        end
        left = frames.size - CALLERS
        left.positive? ? notes << "and #{left} more" : notes
      end

      # Without freed objects there is no mean.
      def age(site) = site.freed_objects.positive? ? format("%.1f", site.mean_age) : "-"

      def share(groups, total)
        shown = groups.first(SHARES).map do |group|
          "#{Printable.fit(group[:data], CLASS_WIDTH)} #{Units.percent(group[:count], total)}"
        end
        shown.join(", ")
      end

      def sampling(interval)
        interval > 1 ? "1 object in #{Units.count(interval)} recorded, scaled up" : "every object recorded"
      end
    end
  end
end
