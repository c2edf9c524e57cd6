# frozen_string_literal: true

require_relative "../response"

module Memprof
  class Web
    module Gate
      # Lets nobody in, and does not say that there is something: what a mounted application does until it is
      # told whom to let in.
      class Closed
        def answer(_request)
          Response.text(404, "Not found\n")
        end
      end
    end
  end
end
