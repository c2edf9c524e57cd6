# frozen_string_literal: true

require_relative "../paths"
require_relative "../printable"
require_relative "values"

module Memprof
  module Dump
    # The frames at the time of the dump, and names of source files in the lines of a dump. Evaluated code has
    # any name that the program gives it, which is data of the program: a dump without contents does not
    # contain it.
    module Frames
      LIMIT = 1000
      private_constant :LIMIT

      class << self
        def notes(options, thread = subject)
          locations = thread.backtrace_locations(0, LIMIT) || []
          frames = locations.drop_while { |location| own?(location) }
          frames.each_with_index.map { |location, index| ["frame", json(location, index, options.contents?)] }
        end

        # The thread whose frames show the program's work: those of memprof's own threads do not.
        def subject = Thread.current.thread_variable_get(:memprof) ? Thread.main : Thread.current

        def path(location, contents)
          path = Printable.utf8(location.path)
          contents || Native.source_file?(path) ? path : Values::HIDDEN
        end

        # A frame as Ruby prints it, with that name.
        def line(location, contents)
          line = Printable.utf8(location.to_s)
          shown = path(location, contents)
          shown == Values::HIDDEN ? shown + line.delete_prefix(Printable.utf8(location.path)) : line
        end

        private

        def own?(location)
          path = location.absolute_path || location.path
          path.start_with?("<internal:") || Paths.own?(Printable.utf8(path))
        end

        def json(location, index, contents)
          file = path(location, contents)
          JSON.generate(_id: "frame:#{index}", type: "frame", file: file,
            line: location.lineno, method: location.base_label && Printable.utf8(location.base_label),
            label: location.label && Printable.utf8(location.label))
        end
      end
    end
  end
end
