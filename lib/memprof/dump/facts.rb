# frozen_string_literal: true

require_relative "../loading"
require_relative "header"
require_relative "globals"
require_relative "frames"
require_relative "proc_notes"
require_relative "threads"

module Memprof
  module Dump
    # What Ruby says about a process, for the lines of a dump that are about no object: as the extension takes
    # it. For a format that has none, nothing is asked: that takes a millisecond or more, in which thousands
    # of objects are dumped.
    module Facts
      # For a dump of some objects: what process they are from.
      def self.header(options)
        Loading.json
        facts = options.to_native
        options.notes? ? facts.merge(header: Header.json(options)) : facts
      end

      # For a dump of the whole heap.
      def self.whole(options)
        return header(options) unless options.notes?

        of_the_heap(options).merge(after: ProcNotes.notes(options))
      end

      # The same without open files and sizes of the process: a heap in memory is not asked for them.
      def self.of_the_heap(options)
        Loading.json
        globals = Globals.read
        header(options).merge(
          before: [["globals", Globals.json(globals, options)], *Frames.notes(options)],
          threads: Threads.facts(options), globals: globals
        )
      end
    end
  end
end
