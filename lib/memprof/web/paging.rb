# frozen_string_literal: true

module Memprof
  class Web
    # Lists are cut into pages by the heap itself: no page is given more rows than it shows.
    #
    # @api private
    module Paging
      # Rows of a page.
      EACH = 50

      private

      # @return [Integer] which page is shown
      def number
        whole(:page, 1)
      end

      # @return [Hash] limit and offset, for a question
      def part
        { limit: EACH, offset: (number - 1) * EACH }
      end

      # @param shown [Integer] rows that are shown
      # @param more [Integer] rows behind them
      # @return [Hash] what {Helpers::Tables#pager} needs
      def paging(shown, more)
        { page: number, each: EACH, total: part[:offset] + shown + more }
      end
    end
  end
end
