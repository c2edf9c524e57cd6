# frozen_string_literal: true

module Memprof
  class Web
    # Lists are cut into pages by the heap itself: no page is given more rows than it shows.
    module Paging
      # Rows of a page.
      EACH = 50

      private

      def each = EACH

      def part = { limit: each, offset: (number - 1) * each }

      def paging(rows, more)
        { page: number, each: each, total: part[:offset] + existing(rows, number).size + more }
      end
    end
  end
end
