# frozen_string_literal: true

require_relative "../live_page"

module Memprof
  class Web
    module Pages
      # `/live/source?file=app.rb&line=12`: the lines around a place where tracked objects were allocated.
      class LiveSource < LivePage
        at "/live/source"

        def title = "#{file}:#{line}"

        def data
          lines = live.tracking.source(file, line)
          rows = live.tracking.rows.select { |row| row[:file] == file && row[:line] == line }
          {
            pid: Process.pid, file: file, line: line,
            lines: lines.map { |number, text| { number: number, text: text } },
            objects: rows.map { |row| row.slice(:class, :count) }
          }
        rescue NotRunning
          raise NotFound, "tracking is not running in process #{Process.pid}"
        end

        private

        def file = text(:file) || raise(BadRequest, "file is missing")

        def line = integer(:line, 1, min: 0)
      end
    end
  end
end
