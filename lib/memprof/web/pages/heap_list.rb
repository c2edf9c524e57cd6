# frozen_string_literal: true

module Memprof
  class Web
    module Pages
      # `/heaps`: the heaps that there are to see.
      class HeapList < Page
        at "/heaps"

        def title = "Heaps"

        def data = { heaps: heaps.map { |entry| row(entry) } }

        private

        def row(entry)
          {
            id: entry.id, name: entry.name, path: entry.path, state: entry.state,
            objects: entry.size, error: entry.error&.message
          }
        end
      end
    end
  end
end
