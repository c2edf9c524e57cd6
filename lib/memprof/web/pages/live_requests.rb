# frozen_string_literal: true

module Memprof
  class Web
    module Pages
      # `/live/requests`: the cost of the traced requests.
      class LiveRequests < LivePage
        at "/live/requests"

        STATEMENTS = 25
        private_constant :STATEMENTS

        def title = "Traced requests of process #{Process.pid}"

        def data
          requests = Records::Traces.parse(LiveRequestsFile.lines(live).join)
          sort = choice(:sort, ["time", *requests.kinds], "time")
          {
            pid: Process.pid, state: live.recorder.state, sort: sort, costs: requests.costs,
            rows: requests.worst(sort)[:requests].map { |row| flat(row) }, **requests.statements(STATEMENTS)
          }
        end

        private

        def flat(row)
          {
            number: row[:line], action: row[:action], path: row[:path], status: row[:status],
            start: Records::Traces.stamp(row[:start]), **row[:costs]
          }
        end
      end

      # `/live/requests/3`: everything that one of them did.
      class LiveRequest < LivePage
        at "/live/requests/:number"

        def title = "Request #{position} of process #{Process.pid}"

        def breadcrumbs = [*super, ["Traced requests", "/live/requests"]]

        def data
          record = live.recorder.records[position - 1] if position.positive?
          raise NotFound, "no such request" unless record

          request = Records::Traces.parse(Memprof::Trace::Journal.json(record)).at(1)
          statements = request ? request[:statements] : []
          { pid: Process.pid, number: position, record: record, statements: statements }
        end

        private

        def position = captured_number(:number) || 0
      end

      # `/live/requests-file`: the requests as a file for `memprof trace`.
      class LiveRequestsFile < LivePage
        at "/live/requests-file"

        def self.lines(live) = live.recorder.records.map { |record| Memprof::Trace::Journal.json(record) }

        def download
          lines = LiveRequestsFile.lines(live)
          Response.download("memprof_tracer-#{Process.pid}.json", "application/json", lines)
        end
      end
    end
  end
end
