# frozen_string_literal: true

module Memprof
  # The clock that nobody sets, for how long something takes.
  #
  # @api private
  module Clock
    # @return [Float] seconds since some moment in the past
    def self.now
      Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
end
