# frozen_string_literal: true

module Memprof
  class Web
    module Pages
      # `/heaps`: the heaps that there are to see, to be closed and opened.
      class HeapList < Page
        at "/heaps", title: "Heaps"
        post "/heaps/:heap/close", :close
        post "/heaps/:heap/open", :open
        post "/heaps/:heap/forget", :forget

        def data = { heaps: heaps.map { |entry| row(entry) } }

        # Closes a heap, which gives its memory back. It stays in the list.
        def close(_request)
          heaps.close(captures.fetch(:heap))
          "/heaps"
        end

        # Opens a heap that is closed, or tries again what could not be opened.
        def open(_request)
          entry = heaps.fetch(captures.fetch(:heap))
          entry.unload if entry.state == :failed
          "/heaps/#{entry.id}/" # which opens it, and waits
        end

        # Takes a heap from the list. The dump stays where it is.
        def forget(_request)
          heaps.forget(captures.fetch(:heap))
          "/heaps"
        end

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
