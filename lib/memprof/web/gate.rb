# frozen_string_literal: true

require_relative "response"

module Memprof
  class Web
    # Who may see anything at all. A gate has one method, `answer(request)`: nil lets the request in, a
    # {Response} is what it gets in place of its page.
    module Gate
      # Lets nobody in, and does not reveal that anything is there.
      class Closed
        def answer(_request) = Response.text(404, "Not found\n")
      end
    end
  end
end

require_relative "gate/mounted"
require_relative "gate/token"
