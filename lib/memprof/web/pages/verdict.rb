# frozen_string_literal: true

require_relative "../../source"
require_relative "../../verdict_wording"

module Memprof
  class Web
    module Pages
      # `/verdict?dumps=1,2,3`: what grows from dump to dump of one process, what retains it, and which line
      # allocated it: what `memprof leaks` answers. The dumps are in the order of time.
      class Verdict < Page
        at "/verdict", assets: ["diff.css"]

        LIMIT = 10
        AROUND = 2
        private_constant :LIMIT, :AROUND

        # The address of the page about some heaps.
        def self.of(ids) = "/verdict?dumps=#{ids.join(",")}"

        # All that are open need no choice.
        def redirect
          self.class.of(heaps.map(&:id)) if text(:dumps).nil? && heaps.count.between?(2, heaps.max_open)
        end

        def title = "What grows"

        def breadcrumbs = [["Heaps", "/heaps"]]

        def entries
          @entries ||= text(:dumps).to_s.split(",").map { |id| heaps.fetch(id) }
        end

        def subjects = entries

        # What it links to is in the last heap.
        def entry = entries.last

        def data
          return { open: heaps.map { |heap| { id: heap.id, name: heap.name } } } if entries.empty?

          check_count
          answer = VerdictWording.complete(verdict)
          findings = answer[:findings].map { |finding| finding.merge(around: around(finding)) }
          { dumps: entries.map { |heap| { id: heap.id, name: heap.name } }, **answer, findings: findings }
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

        # The line of the application with the lines beside it.
        def around(finding)
          line = finding[:own] || finding[:lines].first
          line && Source.lines(line[:file], line[:line], around: AROUND)
        end
      end
    end
  end
end
