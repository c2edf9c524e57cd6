# frozen_string_literal: true

module Memprof
  class Web
    module Pages
      # The heap in numbers, and what may be a leak in it.
      class Overview < HeapPage
        at "/heaps/:heap/", menu: "Overview", order: 10

        # Parameters of the question that most of it answers.
        NUMBERS = { limit: 12 }.freeze
        FINDINGS = 5
        # Of each level of the treemap.
        BOXES = 24
        # Part of the whole that a box of it must be.
        SMALLEST = 1000
        # What is counted, with its name, how it is called on the page and how to see it.
        COUNTED = [
          [:classes, "Classes", "type = CLASS and not singleton"],
          [:singleton_classes, "Singleton classes", "type = CLASS and singleton"],
          [:modules, "Modules", "type = MODULE"],
          [:methods, "Methods", "imemo = ment"],
          [:iseqs, "Compiled code", "imemo = iseq"],
          [:strings, "Strings", "type = STRING"],
          [:symbols, "Symbols", "type = SYMBOL"],
          [:arrays, "Arrays", "type = ARRAY"],
          [:hashes, "Hashes", "type = HASH"],
          [:structs, "Structs", "type = STRUCT"],
          [:procs, "Procs", "type = DATA and class = Proc"],
          [:threads, "Threads", "type = DATA and class = Thread"],
          [:fibers, "Fibers", "type = DATA and class = Fiber"],
          [:files, "Open files", "type = FILE"]
        ].freeze
        # The same of what objects have in common.
        GROUPED = [[:source_files, "Source files", :file], [:shapes, "Shapes", :shape]].freeze
        private_constant :FINDINGS, :BOXES, :SMALLEST

        # Asks what the page asks, in two threads: a heap keeps its answers, and somebody waits for these.
        def self.prepare(heaps, entry)
          page = -> { new(heaps, { heap: entry.id.to_s }) }
          leaks = Thread.new { page.call.leaks }
          leaks.report_on_exception = false # join raises the error
          page.call.data
          leaks.join
        end

        def title = entry.name

        def breadcrumbs = []

        # The file of a program that is no Ruby has blocks all the same.
        def redirect
          heap
          nil
        rescue Memprof::Error
          raise unless entry.core?

          here("/blocks")
        end

        def data
          overview = ask(:overview, **NUMBERS)
          min = overview[:objects][:size] / SMALLEST
          {
            overview: overview, leaks: leaks, slots: slots, **blocks,
            tree: ask(:tree, by_class: true, depth: 4, limit: BOXES, min: [min, 1].max)
          }
        end

        def leaks = VerdictWording.complete(ask(:leaks, limit: FINDINGS))

        private

        # Of malloc, which a core file has.
        def blocks
          entry.core? ? { blocks: entry.core_answer(:overview).slice(:used, :leaked, :unknown) } : {}
        end

        def slots = ask(:slots).except(:rows)
      end
    end
  end
end
