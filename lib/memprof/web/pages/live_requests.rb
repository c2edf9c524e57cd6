# frozen_string_literal: true

require_relative "../live_page"

module Memprof
  class Web
    module Pages
      # `/live/requests`: what the traced requests cost.
      class LiveRequests < LivePage
        at "/live/requests"

        def title = "Traced requests of process #{Process.pid}"

        def data
          log = Memprof::Trace::Log.new
          live.recorder.records.each.with_index(1) do |record, number|
            log.add(Memprof::Trace::Journal.json(record), number)
          end
          sort = word(:sort, ["time", *log.kinds], "time")
          {
            pid: Process.pid, state: live.recorder.state, sort: sort, costs: log.costs,
            rows: log.worst(sort).map { |entry| row(entry) }
          }
        end

        private

        def row(entry)
          {
            number: entry.line, action: entry.action, path: entry.path, status: entry.status,
            start: entry.start&.utc&.strftime("%F %T.%3N UTC"), **entry.costs.transform_keys(&:to_sym)
          }
        end
      end

      # `/live/requests/3`: all that one of them did.
      class LiveRequest < LivePage
        at "/live/requests/:number"

        def title = "Request #{number} of process #{Process.pid}"

        def breadcrumbs = [*super, ["Traced requests", "/live/requests"]]

        def data
          record = live.recorder.records[number - 1] if number.positive?
          { pid: Process.pid, number: number, record: record || raise(NotFound, "no such request") }
        end

        private

        def number = Integer(captures.fetch(:number), 10, exception: false) || 0
      end

      # `/live/requests-file`: the requests as a file, which `memprof trace` reads.
      class LiveRequestsFile < LivePage
        at "/live/requests-file"

        def download
          lines = live.recorder.records.map { |record| Memprof::Trace::Journal.json(record) }
          Response.download("memprof_tracer-#{Process.pid}.json", "application/json", lines)
        end
      end

      # Has the process trace the next requests; with none, stop that.
      class TraceRequests < LivePage
        at "/live/requests", verb: "POST"

        def act(request)
          unless request.form["stop"].nil?
            live.recorder.stop
            return done(:traced)
          end

          live.recorder.start(field(request, "count", 20, Web::Live::Recorder::MOST))
          done(:tracing)
        end
      end
    end
  end
end
