# frozen_string_literal: true

module Memprof
  class Web
    module Pages
      # The heap in numbers, and possible leaks.
      class Overview < HeapPage
        at "/heaps/:heap/", menu: "Overview", order: 10

        # Parameters of the question that answers most of it.
        NUMBERS = { limit: 12 }.freeze
        FINDINGS = 5
        # Maximum number of boxes per level of the treemap.
        BOXES = 24
        # Boxes below this fraction of the heap (1/1000) are omitted.
        SMALLEST = 1000
        # Counts: key in the answer, name on the page, and filter for the link.
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
        # Counts of common properties, with their grouping criterion.
        GROUPED = [[:source_files, "Source files", :file], [:shapes, "Shapes", :shape]].freeze
        private_constant :FINDINGS, :BOXES, :SMALLEST

        # Asks the page's questions in two threads, as somebody waits for the answers, which the heap caches.
        def self.prepare(heaps, entry)
          page = -> { new(heaps, { heap: entry.id.to_s }) }
          leaks = Thread.new { page.call.leaks }
          leaks.report_on_exception = false # join raises the error
          page.call.data
          leaks.join
        end

        def title = entry.name

        def breadcrumbs = []

        def command = command_line("stats")

        # The parts of memory are known all the same of a core file without Ruby whose blocks are unknown.
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
            overview: overview, leaks: leaks, slots: (slots if overview[:slots]), **blocks,
            tree: ask(:tree, by_class: true, depth: 4, limit: BOXES, min: [min, 1].max)
          }
        end

        def leaks = VerdictWording.complete(ask(:leaks, limit: FINDINGS))

        private

        # Malloc blocks, which a core file has.
        def blocks
          return {} unless entry.core?

          overview = entry.core_answer(:overview)
          return { blocks: overview.slice(:unknown) } if overview[:unknown]

          { blocks: { used: overview[:used], leaked: ask(:histogram, by: :type, where: "leaked")[:total] } }
        end

        def slots = ask(:slots).except(:rows)
      end
    end
  end
end
