# frozen_string_literal: true

require_relative "../paths"
require_relative "../printable"
require_relative "source_names"

module Memprof
  module Dump
    # The frames that were running when the dump was asked for.
    module Frames
      LIMIT = 1000
      private_constant :LIMIT

      class << self
        def notes(options, thread = subject)
          locations = thread.backtrace_locations(0, LIMIT) || []
          frames = locations.drop_while { |location| own?(location) }
          frames.each_with_index.map { |location, index| ["frame", json(location, index, options.contents?)] }
        end

        # Threads whose frames show what the program was doing: those of a thread of memprof's own do not.
        def subject
          Thread.current.thread_variable_get(:memprof) ? Thread.main : Thread.current
        end

        private

        def own?(location)
          path = location.absolute_path || location.path
          path.start_with?("<internal:") || Paths.own?(Printable.utf8(path))
        end

        def json(location, index, contents)
          file = SourceNames.path(location, contents)
          JSON.generate(_id: "frame:#{index}", type: "frame", file: file,
            line: location.lineno, method: location.base_label && Printable.utf8(location.base_label),
            label: location.label && Printable.utf8(location.label))
        end
      end
    end
  end
end
