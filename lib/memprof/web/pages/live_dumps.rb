# frozen_string_literal: true

require_relative "../live_page"

module Memprof
  class Web
    module Pages
      # Has the process dump its heap.
      #
      # @api private
      class TakeDump < LivePage
        at "/live/dumps", verb: "POST"

        # @return [String]
        # @raise [Conflict] if one is being written already
        def act(_request) = "/live/dumps/#{live.dumps.take}"
      end

      # `/live/dumps/1732252245000`: waits for a dump, and goes on to its heap.
      #
      # @api private
      class LiveDump < LivePage
        at "/live/dumps/:number"

        # @return [String]
        # @raise [Opening] if it is being written
        # @raise [NotFound] if there is none
        # @raise [Memprof::Error] if it could not be written
        def redirect
          number = Integer(captures.fetch(:number), 10, exception: false)
          writing = live.dumps.writing(number)
          raise Opening, writing if writing
          return "/heaps/#{number}/" if live.dumps.find(number)

          raise live.dumps.failure(number) || NotFound.new("there is no such dump")
        end
      end

      # Deletes a dump, and closes its heap.
      #
      # @api private
      class DeleteLiveDump < LivePage
        at "/live/dumps/:number/delete", verb: "POST"

        # @return [String]
        # @raise [NotFound] if there is none
        def act(_request)
          number = Integer(captures.fetch(:number), 10, exception: false)
          live.dumps.find(number) || raise(NotFound, "there is no such dump")
          heaps.forget(number)
          live.dumps.delete(number)
          done(:deleted)
        end
      end
    end
  end
end
