# frozen_string_literal: true

module Memprof
  class Web
    # The pages; those about one kind of thing are in one file.
    module Pages
      # `/`: the running process, what grows from heap to heap, the first heap that is open, or could be, what
      # else there is, the library, or the list if nothing is.
      class Home < Page
        at "/"

        def redirect
          return "/live" if heaps.live
          return Verdict.of(heaps.map(&:id)) if comparable?

          first = heaps.find { |entry| %i[open opening].include?(entry.state) } || heaps.first
          return "/heaps/#{first.id}/" if first

          heaps.records.first&.page_path || (heaps.library ? "/library" : "/heaps")
        end

        private

        # Heaps that were closed stay so, and what can't be read is in the list.
        def comparable?
          heaps.count.between?(2, heaps.max_open) && heaps.none? { |entry| entry.closed? || entry.error }
        end
      end

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
