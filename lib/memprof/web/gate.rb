# frozen_string_literal: true

require_relative "gate/closed"
require_relative "gate/mounted"
require_relative "gate/token"

module Memprof
  class Web
    # Who may see anything at all. A gate has one method, `answer(request)`: nil lets the request in, a
    # {Response} is what it gets in place of its page.
    module Gate
    end
  end
end
