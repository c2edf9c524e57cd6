# frozen_string_literal: true

require_relative "../source"
require_relative "../verdict_wording"

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
  end
end
