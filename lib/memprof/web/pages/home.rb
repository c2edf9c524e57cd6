# frozen_string_literal: true

module Memprof
  class Web
    # The pages, one a file.
    module Pages
      # `/`: the running process, the first heap that is open, or could be, what else there is, the library,
      # or the list if nothing is.
      class Home < Page
        at "/"

        def redirect
          return "/live" if heaps.live

          first = heaps.find { |entry| %i[open opening].include?(entry.state) } || heaps.first
          return "/heaps/#{first.id}/" if first

          heaps.records.first&.page_path || (heaps.library ? "/library" : "/heaps")
        end
      end
    end
  end
end
