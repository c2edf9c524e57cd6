# frozen_string_literal: true

module Memprof
  module Rails
    # What `rails console` has of memprof: one method.
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
