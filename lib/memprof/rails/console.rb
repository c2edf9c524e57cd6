# frozen_string_literal: true

module Memprof
  module Rails
    # memprof's only method in `rails console`.
    #
    # @api private
    module Console
      # Prints what a block allocates and retains.
      #
      # @yield the code to measure
      # @return [nil]
      def memprof(**options, &block)
        puts Memprof.report(**options, &block)
      end
    end
  end
end
