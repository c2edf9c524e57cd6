# frozen_string_literal: true

require_relative "../diff_page"

module Memprof
  class Web
    module Pages
      # `/diff/interface?a=1&b=2`: where old objects refer to new ones, and what that retains.
      class DiffInterface < DiffPage
        at "/diff/interface", title: "References from old to new objects"

        LIMIT = 30
        private_constant :LIMIT

        def breadcrumbs
          [*super, ["Comparison", "/diff?#{URI.encode_www_form(subject)}"]]
        end

        def data = ask(:interface, limit: integer(:limit, LIMIT, max: 1000))
      end
    end
  end
end
