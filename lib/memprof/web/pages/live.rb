# frozen_string_literal: true

require_relative "../live_page"

module Memprof
  class Web
    module Pages
      # `/live`: the running process, and what can be done with it. `file` chooses tracked objects by what the
      # path of the file contains that made them, as `file ~` does in a query.
      class Live < LivePage
        at "/live", menu: "Live", order: 5

        ROWS = 50 # of the table of places
        # What was done, in words.
        DONE = {
          started: "Tracking started in process %d.", already: "Tracking was already running in process %d.",
          stopped: "Tracking stopped in process %d.",
          idle: "Tracking was not running in process %d.",
          cleared: "Cleared the tracked objects of process %d; tracking continues.",
          tracing: "Process %d traces its next requests.",
          traced: "Tracing stopped in process %d.", deleted: "Deleted the dump (process %d)."
        }.freeze
        private_constant :ROWS, :DONE

        def title = "Process #{Process.pid}"

        def breadcrumbs = []

        def scripts = ["filter.js"]

        def data
          process = live.facts(types: choice(:types, %w[yes no], "no") == "yes")
          { process: process, tracking: tracking, dumps: dumps, requests: requests, done: sentence(DONE) }
        end

        private

        def tracking
          number = integer(:page, 1)
          return { running: false } unless live.tracking.running?

          rows = live.tracking.rows(file: text(:file))
          {
            running: true, file: text(:file), objects: rows.sum { |row| row[:count] }, places: rows.size,
            page: number, each: ROWS, rows: existing(rows.drop((number - 1) * ROWS).first(ROWS), number)
          }
        rescue NotRunning
          { running: false } # stopped in between
        end

        def dumps
          live.dumps.map do |dump|
            { id: dump.number, pid: dump.pid, time: dump.time.strftime("%F %T UTC"), size: dump.bytes,
              path: dump.path }
          end
        end

        def requests = live.recorder.state.merge(middleware: live.recorder.installed)
      end
    end
  end
end
