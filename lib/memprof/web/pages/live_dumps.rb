# frozen_string_literal: true

require_relative "../live_page"

module Memprof
  class Web
    module Pages
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
    end
  end
end
