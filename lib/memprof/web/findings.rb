# frozen_string_literal: true

require_relative "../source"
require_relative "../verdict_wording"

module Memprof
  class Web
    # The answer of a verdict as pages show it: in sentences, with source.
    module Findings
      AROUND = 2
      private_constant :AROUND

      private

      def findings(entries, answer)
        answer = VerdictWording.complete(answer)
        around = answer[:findings].map { |finding| finding.merge(around: around(finding)) }
        { dumps: entries.map { |heap| { id: heap.id, name: heap.name } }, **answer, findings: around }
      end

      # The line of the application with the lines beside it.
      def around(finding)
        line = finding[:own] || finding[:lines].first
        line && Source.lines(line[:file], line[:line], around: AROUND)
      end
    end
  end
end
