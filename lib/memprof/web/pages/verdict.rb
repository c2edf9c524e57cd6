# frozen_string_literal: true

require_relative "../../source"
require_relative "../../verdict_wording"

module Memprof
  class Web
    # A verdict's answer for pages: in sentences, with source.
    module Findings
      AROUND = 2
      private_constant :AROUND

      private

      def findings(entries, answer)
        answer = VerdictWording.complete(answer)
        around = answer[:findings].map { |finding| finding.merge(around: around(finding)) }
        { dumps: entries.map { |heap| { id: heap.id, name: heap.name } }, **answer, findings: around }
      end

      # The application's line with the lines around it.
      def around(finding)
        line = finding[:own] || finding[:lines].first
        line && Source.lines(line[:file], line[:line], around: AROUND)
      end
    end

    module Pages
      # `/verdict?dumps=1,2,3`: growth from dump to dump of one process, what retains it, and which line
      # allocated it, as in `memprof leaks`. Dumps are in chronological order.
      class Verdict < Page
        include Findings

        at "/verdict", assets: ["diff.css"]

        LIMIT = 10
        private_constant :LIMIT

        # The address of the page for these heaps.
        def self.of(ids) = "/verdict?dumps=#{ids.join(",")}"

        # Compares all heaps by default.
        def redirect
          self.class.of(heaps.map(&:id)) if text(:dumps).nil? && heaps.count.between?(2, heaps.max_open)
        end

        def title = "What grows"

        def command = command_of_heaps("leaks", entries, own: text(:own))

        def breadcrumbs = [["Heaps", "/heaps"]]

        def entries
          @entries ||= text(:dumps).to_s.split(",").map { |id| heaps.fetch(id) }
        end

        def subjects = entries

        # Its links lead to the last heap.
        def entry = entries.last

        def data
          return { open: heaps.map { |heap| { id: heap.id, name: heap.name } } } if entries.empty?

          check_count
          findings(entries, verdict)
        end

        private

        def check_count
          return if entries.size.between?(2, heaps.max_open)

          raise BadRequest, "#{entries.size} dumps; expected 2 to #{heaps.max_open}, such as dumps=1,2,3"
        end

        def verdict
          heaps.verdict(entries).answer(limit: integer(:limit, LIMIT, max: 1000), own: text(:own))
        rescue ArgumentError => e
          raise BadRequest, e.message
        end
      end
    end
  end
end
