# frozen_string_literal: true

require_relative "../paging"

module Memprof
  class Web
    module Pages
      # Threads, what they do, and what their stacks hold.
      class Threads < HeapPage
        include Paging

        at "/heaps/:heap/threads", menu: "Threads", order: 90

        def title = "Threads"

        def data
          answer = ask(:threads, where: text(:where), **part)
          answer.merge(paging: paging(answer[:rows], answer[:more]))
        end
      end
    end
  end
end
