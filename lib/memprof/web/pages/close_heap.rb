# frozen_string_literal: true

module Memprof
  class Web
    module Pages
      # Closes a heap, which gives its memory back. It stays in the list.
      class CloseHeap < Page
        at "/heaps/:heap/close", verb: "POST"

        def act(_request)
          heaps.close(captures.fetch(:heap))
          "/heaps"
        end
      end

      # Opens a heap that is closed, or tries again what could not be opened.
      class OpenHeap < Page
        at "/heaps/:heap/open", verb: "POST"

        def act(_request)
          entry = heaps.fetch(captures.fetch(:heap))
          entry.unload if entry.state == :failed
          "/heaps/#{entry.id}/" # which opens it, and waits
        end
      end

      # Takes a heap from the list. The dump stays where it is.
      class ForgetHeap < Page
        at "/heaps/:heap/forget", verb: "POST"

        def act(_request)
          heaps.forget(captures.fetch(:heap))
          "/heaps"
        end
      end
    end
  end
end
