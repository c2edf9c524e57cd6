# frozen_string_literal: true

require_relative "../live_page"

module Memprof
  class Web
    module Pages
      # Has the process dump its heap.
      class TakeDump < LivePage
        at "/live/dumps", verb: "POST"

        def act(_request) = "/live/dumps/#{live.dumps.take}"
      end

      # `/live/dumps/1732252245000`: waits for a dump, and goes on to its heap.
      class LiveDump < LivePage
        at "/live/dumps/:number"

        def redirect
          number = Integer(captures.fetch(:number), 10, exception: false)
          writing = live.dumps.writing(number)
          raise Opening, writing if writing
          return "/heaps/#{number}/" if live.dumps.find(number)

          raise live.dumps.failure(number) || NotFound.new("no such dump")
        end
      end

      # Deletes a dump, and closes its heap.
      class DeleteLiveDump < LivePage
        at "/live/dumps/:number/delete", verb: "POST"

        def act(_request)
          number = Integer(captures.fetch(:number), 10, exception: false)
          live.dumps.find(number) || raise(NotFound, "no such dump")
          heaps.forget(number)
          live.dumps.delete(number)
          done(:deleted)
        end
      end
    end
  end
end
