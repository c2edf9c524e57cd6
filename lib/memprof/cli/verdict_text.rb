# frozen_string_literal: true

require_relative "../heap/sentences"
require_relative "../verdict_wording"

module Memprof
  module CLI
    # Lays out what grows from dump to dump, or is large in one.
    class VerdictText
      def self.table(page, findings)
        page.listing(Listing.new.columns(:gained)
          .columns(:count, as: :objects) { |finding| VerdictWording.more(finding) }
          .columns(:class)
          .columns(:retained_by, as: :holder) { |finding| VerdictWording.retained_by(finding) }
          .columns(:site) { |finding| finding[:lines].first }
          .columns(:own, :trend, :why)
          .rows(findings))
      end

      # `group` is the watched processes, `file` the only dump, read with its `blocks` or without.
      def initialize(page, answer, group: nil, file: nil, blocks: false)
        @file = file
        @blocks = blocks
        @page = page
        @answer = answer
        @group = group
        @words = VerdictWording.new(answer, **(group ? { pid: group.pids.first, malloc: group.malloc } : {}))
      end

      def render(format)
        findings = @answer[:findings]
        return self.class.table(@page, findings) if format == :csv

        @page.heading(heading)
        [@words.reachable, @words.memory].compact.each { |line| @page.text(line) }
        findings.each.with_index(1) do |finding, number|
          @page.paragraph("#{number}. #{@words.sentence(finding)}")
          @page.facts(@words.facts(finding))
        end
        more = @answer[:more]
        @page.note("... #{Units.plural(more, "more finding")} (--limit N)") if more.positive?
        @page.paragraph(leaked) if @file && @answer[:blocks]
        [*@answer[:remarks].map { |remark| in_reach(remark) }, sampled].compact.each do |remark|
          @page.paragraph(Wording.note(remark))
        end
      end

      private

      def heading
        return "#{@file}: #{@words.title}" if @file

        @group ? "#{processes}: #{@words.title.sub(/\A[A-Z]/, &:downcase)}" : @words.title
      end

      # A process can be asked again for what its dumps lack.
      def in_reach(remark)
        return remark unless @group && remark.start_with?(Heap::Sentences::NO_LINES)

        "#{Heap::Sentences::NO_LINES}`memprof leaks --attach #{@group.pids.first}` shows them."
      end

      # Blocks leaked by C code, from the core file.
      def leaked
        said = @words.blocks || "No block of malloc is leaked."
        blocks = @answer[:blocks]
        file = Suggestion.word(@file)
        read = @blocks ? "--blocks #{file}" : file
        shown = blocks[:series] ? "query #{read} leaked" : "core #{file} summarize leaked"
        "#{said}#{" `memprof #{shown}` shows them." if blocks[:count].to_i.positive?}"
      end

      def sampled
        return unless @group&.sample && @answer[:findings].any?

        "one object in #{@group.sample} was tracked, and only these count for a line"
      end

      def processes
        pids = @group.pids
        ended = @group.ended
        "#{@group.name} (#{pids.join(", ")})#{", without #{ended.join(", ")}, which ended" if ended.any?}"
      end
    end
  end
end
