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

      # @return [Integer] rows of a page
      def each = EACH

      # @return [Integer] which page is shown
      def number
        whole(:page, 1)
      end

      # @return [Hash] limit and offset, for a question
      def part
        { limit: each, offset: (number - 1) * each }
      end

      # @param rows [Array] that are shown
      # @param more [Integer] rows behind them
      # @return [Hash] what {Helpers::Tables#pager} needs
      # @raise [NotFound] if the list ends before this page
      def paging(rows, more)
        { page: number, each: each, total: part[:offset] + existing(rows, number).size + more }
      end
    end
  end
end
