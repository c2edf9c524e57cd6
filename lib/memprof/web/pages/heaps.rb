# frozen_string_literal: true

module Memprof
  class Web
    # The pages; pages about one kind of thing share a file.
    module Pages
      # `/`: redirects to the running process, growth from heap to heap, the first heap that is or can be
      # opened, other files, the library, or else to the list.
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

        # Closed heaps stay closed, and unreadable ones are in the list.
        def comparable?
          heaps.count.between?(2, heaps.max_open) && heaps.none? { |entry| entry.closed? || entry.error }
        end
      end

      # `/heaps`: the available heaps, to open and close.
      class HeapList < Page
        at "/heaps", title: "Heaps"
        post "/heaps/:heap/close", :close
        post "/heaps/:heap/open", :open
        post "/heaps/:heap/forget", :forget

        def data = { heaps: heaps.map { |entry| row(entry) } }

        # Closes a heap, which releases its memory. It stays in the list.
        def close(_request)
          heaps.close(captures.fetch(:heap))
          "/heaps"
        end

        # Opens a closed heap, or retries one that could not be opened.
        def open(_request)
          entry = heaps.fetch(captures.fetch(:heap))
          entry.unload if entry.state == :failed
          "/heaps/#{entry.id}/" # this page opens the heap, and waits
        end

        # Removes a heap from the list. The dump file stays.
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
