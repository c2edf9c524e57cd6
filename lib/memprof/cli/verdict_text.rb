# frozen_string_literal: true

require_relative "../source"
require_relative "../wording"

module Memprof
  module CLI
    # What grows from dump to dump, laid out.
    class VerdictText
      TRENDS = {
        "unknown" => "two dumps show no trend",
        "levels_off" => "levels off, as a cache that fills"
      }.freeze
      SHARE = 10 # a line that allocated one in so many bytes of a class is named
      STEP = 1 << 20 # RSS that grows by as much from each dump to the next
      private_constant :TRENDS, :SHARE, :STEP

      class << self
        # The answer with the source of each line, if its file can be read.
        def with_source(answer)
          findings = answer[:findings].map do |finding|
            finding.merge(own: sourced(finding[:own]), lines: finding[:lines].map { |line| sourced(line) })
          end
          answer.merge(findings: findings)
        end

        private

        def sourced(line) = line&.merge(source: Source.line(line[:file], line[:line]))
      end

      def initialize(page, answer)
        @page = page
        @answer = answer
      end

      def render(format)
        return table if format == :csv

        findings = @answer[:findings]
        @page.heading(title)
        @page.text(reachable)
        @page.text(memory)
        findings.each_with_index { |finding, index| finding(finding, index + 1) }
        more = @answer[:more]
        @page.note("... and #{Units.plural(more, "finding")} more: --limit N") if more.positive?
        @answer[:remarks].each { |remark| @page.paragraph("Note: #{remark.delete_suffix(".")}.") }
      end

      private

      def title
        count = @answer[:findings].size + @answer[:more]
        return "#{Units.plural(count, "finding")}, in #{@answer[:heaps]} dumps" if count.positive?

        native? ? "No Ruby object grows, native memory does" : "Nothing grows"
      end

      # Whether C code takes most of what RSS grew by, and RSS grows from dump to dump.
      def native?
        memory = @answer[:memory]
        return false unless memory && memory[:objects] * 2 < native(memory)

        steps = @answer[:rss].compact.each_cons(2).map { |before, after| after - before }
        return false unless steps.all?(&:positive?)

        cause = memory[:cause]
        cause ? cause[:key] == "malloc" : steady?(steps) && native(memory) * 2 > memory[:change]
      end

      def native(memory) = memory[:items].sum { |item| item[:key] == "malloc" ? item[:change] : 0 }

      # Less than what any process grows by once counts if it grows by as much again.
      def steady?(steps) = steps.size > 1 && steps.min >= STEP && steps.min * 2 >= steps.max

      # What the process took besides objects is in its dumps, unless a copy of it was dumped.
      def memory
        memory = @answer[:memory]
        return "The dumps do not say what RSS was: whether native memory grows is not known." unless memory

        advice = " `memprof attach --malloc` shows which lines allocate it." if native?
        "#{Wording.memory(memory)}#{advice}"
      end

      def reachable
        sizes = @answer[:reachable].map { |sum| Units.bytes(sum[:size]) }
        "Reachable objects: #{sizes.join(", ")}."
      end

      def finding(finding, number)
        @page.paragraph("#{number}. #{sentence(finding)}")
        @page.facts(
          "Retained by" => retained_by(finding),
          "Allocated at" => allocated(finding),
          "Application" => application(finding),
          "Source" => (finding[:own] || finding[:lines].first)&.fetch(:source),
          "Mostly in" => mostly(finding[:mostly]),
          "Because" => finding[:why],
          "Dumps" => dumps(finding)
        )
      end

      # "32,000 more String instances, with what they retain 2.2 MiB more".
      def sentence(finding)
        more = finding[:count].last - finding[:count].first
        gained = Units.bytes(finding[:gained])
        return "#{instances(finding[:count].last, finding)} grew by #{gained}" if finding[:in_place]

        places = finding[:places]
        everywhere = ", in #{Units.plural(places, "place")} that are alike" if places > 1
        list = ", each retained by another" if finding[:list]
        "#{instances(more, finding, "more ")} retain #{gained}#{everywhere}#{list}"
      end

      def instances(count, finding, more = nil)
        name, place = kind(finding[:class])
        one = finding[:kind] == "object" ? "#{name} instance" : name
        "#{Units.count(count)} #{more}#{one}#{"s" unless count == 1}#{" written at #{place}" if place}"
      end

      # Each thread runs; that the VM knows it explains nothing.
      def retained_by(finding)
        finding[:kind] == "object" ? Wording.phrase(finding[:retained_by]) : "running #{finding[:kind]}s"
      end

      # Several lines, if each allocated a good part of the same class.
      def allocated(finding)
        first, *others = finding[:lines]
        return unless first

        others.select! { |line| line[:class] == first[:class] && line[:size] * SHARE >= first[:size] }
        [first, *others].map { |line| "#{Cell.place(line)}: #{what(line)}" }.join("; ")
      end

      # The line of the application, where the first line is a gem's.
      def application(finding)
        own = finding[:own]
        return if own.nil? || own.values_at(:file, :line) == finding[:lines].first&.values_at(:file, :line)

        "#{Cell.place(own)}: #{what(own)}"
      end

      def mostly(mostly) = mostly && "#{Wording.phrase(mostly[:path])} -> #{what(mostly)}"

      def what(sum)
        "#{kind(sum[:class]).first} (#{Units.count(sum[:count])}, #{Units.bytes(sum[:size])})"
      end

      # A class, and of a block the place where it is written.
      def kind(name) = name.start_with?("Proc ") ? name.split(" ", 2) : [name]

      def dumps(finding)
        sizes = finding[:size]
        trend = TRENDS[finding[:trend]]
        "#{Cell.text(sizes, :series)} #{sizes.map { |size| Units.bytes(size) }.join(", ")}" \
          "#{"; #{trend}" if trend}"
      end

      def table
        @page.listing(Listing.new.column("Gained", :bytes, :gained)
          .column("Objects", :count, :objects) { |finding| finding[:count].last - finding[:count].first }
          .column("Class", :name, :class)
          .column("Retained by", :name, :holder) { |finding| retained_by(finding) }
          .column("Allocated at", :place, :site) { |finding| finding[:lines].first }
          .column("Application", :place, :own)
          .column("Trend", :name, :trend)
          .column("Because", :name, :why)
          .rows(@answer[:findings]))
      end
    end
  end
end
