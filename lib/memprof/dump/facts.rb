# frozen_string_literal: true

require_relative "../loading"
require_relative "header"
require_relative "globals"
require_relative "frames"
require_relative "proc_notes"
require_relative "threads"

module Memprof
  module Dump
    # Ruby's facts about a process, for the lines of a dump that describe no object, in the form that the
    # extension takes. For a format without such lines they are not collected: that takes a millisecond or
    # more, enough to dump thousands of objects.
    module Facts
      # For a dump of some objects: the process they belong to.
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

      # The same without open files and process sizes: a heap in memory does not need them.
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
