# frozen_string_literal: true

require_relative "../record_page"

module Memprof
  class Web
    module Pages
      # `/traces/1/requests/12`: all that is known of one request, by its line in the file.
      class TraceRequest < RecordPage
        at "/traces/:id/requests/:line"
        about :trace

        def title = entry_of_line.action

        def breadcrumbs = [*super, [record.name, within]]

        def data
          entry = entry_of_line
          { line: entry.line, action: entry.action, path: entry.path, status: entry.status,
            costs: entry.costs, ranks: ranks(entry), requests: content.log.entries.size,
            record: entry.record }
        end

        private

        def entry_of_line
          line = Integer(captures.fetch(:line), 10, exception: false)
          content.at(line) || raise(NotFound, "line #{captures.fetch(:line)} is not a request")
        end

        def ranks(entry)
          entry.costs.to_h do |kind, cost|
            [kind, content.log.entries.count { |other| other.cost(kind) > cost } + 1]
          end
        end
      end
    end
  end
end
