# frozen_string_literal: true

module Memprof
  # The clock that nobody sets, for how long something takes.
  module Clock
    def self.now
      Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
end
