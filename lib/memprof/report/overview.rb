# frozen_string_literal: true

require_relative "../paths"
require_relative "../table"
require_relative "../units"

module Memprof
  class Report
    # What memprof's own presentations of a report say: one headline, the facts of the run, a table of
    # retained objects and one of allocations. Text and Markdown differ in how they print it.
    class Overview
      CLASS_WIDTH = 40
      CALLERS = 4
      SHARES = 5
      SHARE_TO_EXPLAIN = 0.05
      # A method written in C that no Ruby code called.
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

      # Totals; what is retained comes first, since that is what a leak is.
      def headline
        return "Nothing was allocated." if @report.total_allocated.zero?

        freed = @report.totals.fetch("freed")
        "#{amount(@report.total_retained, @report.total_retained_memsize)} retained of " \
          "#{amount(@report.total_allocated, @report.total_allocated_memsize)} allocated; " \
          "#{amount(freed["objects"], freed["bytes"])} freed"
      end

      # How the numbers came about.
      def facts
        meta = @report.meta
        frames = meta["stack"].to_i > 1 ? "#{meta["stack"]} frames an object" : nil
        [
          runtime(meta["runtime"]), duration(meta["duration"]), gc_runs(meta["gc_count"]),
          sampling(meta["sample"].to_i), frames, (INCOMPLETE if meta["incomplete"])
        ].compact.join(", ")
      end

      # A line on what the VM made for itself, which the tables leave out; nil if that is nothing.
      def internal
        retained, allocated = %w[retained allocated].map do |kind|
          %w[objects bytes].map { |unit| @report.totals[kind][unit] - @listed.totals[kind][unit] }
        end
        return unless allocated.first.positive?

        "not listed: #{amount(*allocated)} that the VM allocated for itself, #{amount(*retained)} retained"
      end

      # What stands for a table without rows.
      def nothing(kind)
        "Nothing #{"else " if @report.totals[kind.to_s]["objects"].positive?}is #{kind}."
      end

      # What the process was when memory was largest; nil if that was not to be found.
      def peak_facts
        peak = @report.peak
        return unless peak

        parts = { "RSS" => peak[:resident], "malloc in use" => peak[:malloc], "slots" => peak[:slots] }
        parts = parts.compact.map { |name, bytes| "#{name} #{Units.bytes(bytes)}" }
        ever = "; largest RSS #{Units.bytes(peak[:resident_ever])}" if peak[:resident_ever]
        "Peak after #{Units.seconds(peak[:time])}: #{amount(peak[:objects], peak[:bytes])} of Ruby; " \
          "#{parts.join(", ")}#{ever}"
      end

      # Sites whose objects there were when memory was largest, most bytes first.
      def peak
        table = Table.new.number("At peak", style: :red).number("Objects").number("Allocated")
          .name("Class", style: :cyan).name("Allocated at")
        places(:peak).last.each do |site|
          table.row(Units.bytes(site.peak_bytes), Units.count(site.peak_objects),
            Units.bytes(site.allocated_bytes), *names(site),
            notes: callers(site, site.peak_bytes.fdiv(@report.peak[:bytes])))
        end
        table
      end

      # Sites with retained objects, most bytes first; empty if nothing is retained.
      def retained
        table = Table.new
        table.number("Retained", style: :red).number("Objects").number("Retained %")
        table.name("Class", style: :cyan).name("Allocated at")
        places(:retained).last.each do |site|
          table.row(Units.bytes(site.retained_bytes), Units.count(site.retained_objects),
            Units.percent(site.retained_objects, site.allocated_objects), *names(site),
            notes: callers(site, site.retained_bytes.fdiv(@listed.total_retained_memsize)))
        end
        table
      end

      # Sites that allocated most, most bytes first.
      def allocated
        table = Table.new
        table.number("Allocated", style: :yellow).number("Objects").number("Freed").number("Mean age")
        table.name("Class", style: :cyan).name("Allocated at")
        places(:allocated).last.each do |site|
          table.row(Units.bytes(site.allocated_bytes), Units.count(site.allocated_objects),
            Units.percent(site.freed_objects, site.allocated_objects), age(site), *names(site),
            notes: callers(site, site.allocated_bytes.fdiv(@listed.total_allocated_memsize)))
        end
        table
      end

      # How a total divides: `{"class" => "String 60 %, Hash 20 %", "gem" => ...}`.
      def shares(kind)
        total = kind == :retained ? @listed.total_retained_memsize : @listed.total_allocated_memsize
        %w[class gem].to_h { |by| [by, share(@listed.public_send("#{kind}_memory_by_#{by}"), total)] }
      end

      # A line on the sites that a table leaves out, nil if there are none.
      def rest(kind)
        left = places(kind).first - @limit
        "#{Units.count(left)} more site#{"s" unless left == 1}" if left.positive?
      end

      private

      def places(kind) = @listed.places(kind, limit: @limit)

      def amount(objects, bytes) = "#{Units.objects(objects)} (#{Units.bytes(bytes)})"

      def names(site)
        place = "#{Paths.short(site.file, @directory)}:#{site.line}"
        place += " in #{site.method_name}" unless site.method_name.empty?
        [Printable.fit(site.class_name, CLASS_WIDTH), place]
      end

      # Lines on who called; for the sites that matter only, or they would bury these.
      def callers(site, share)
        return [] if share < SHARE_TO_EXPLAIN

        frames = site.callers.reject { |frame| frame.start_with?(NO_FILE) || Paths.own?(frame) }
        notes = frames.first(CALLERS).map do |frame|
          "from #{Paths.short(frame, @directory).sub(":in ", " in ")}"
        end
        left = frames.size - CALLERS
        left.positive? ? notes << "and #{left} more" : notes
      end

      # Where no object was freed there is no mean.
      def age(site) = site.freed_objects.positive? ? format("%.1f", site.mean_age) : "-"

      def share(groups, total)
        shown = groups.first(SHARES).map do |group|
          "#{Printable.fit(group[:data], CLASS_WIDTH)} #{Units.percent(group[:count], total)}"
        end
        shown.join(", ")
      end

      def runtime(description) = description.to_s[/\A\S+(?: [\d.]+)?/]

      def duration(seconds)
        Units.seconds(seconds) if seconds
      end

      def gc_runs(count)
        "#{Units.count(count)} GC run#{"s" unless count == 1}" if count
      end

      def sampling(interval)
        interval > 1 ? "1 object in #{Units.count(interval)} recorded, scaled up" : "every object recorded"
      end
    end
  end
end
