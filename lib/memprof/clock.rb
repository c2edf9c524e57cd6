# frozen_string_literal: true

module Memprof
  # The monotonic clock, for durations.
  module Clock
    def self.now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end
end
