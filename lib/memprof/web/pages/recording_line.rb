# frozen_string_literal: true

require_relative "../recording_page"
require_relative "../../source"

module Memprof
  class Web
    module Pages
      # `/malloc/1/line?at=app.rb:12`: what a line allocated, and who called it.
      class RecordingLine < RecordingPage
        at "/malloc/:id/line"

        def title = Paths.short(location)

        def breadcrumbs = [*super, [record.name, within]]

        def data
          summary = content.summary(**chosen)
          row = summary[:locations].find { |one| one[:location] == location }
          raise NotFound, "nothing was allocated at #{location}" unless row

          file, _, line = location.rpartition(":")
          row.merge(values: VALUES, range: range, line: line.to_i, sample: summary[:sample],
            source: Source.lines(file, line.to_i),
            callers: content.callers(location, value.to_sym, **chosen))
        end

        def bytes = :"#{value}_bytes"

        private

        def location = text(:at) || raise(BadRequest, "at is missing")
      end
    end
  end
end
