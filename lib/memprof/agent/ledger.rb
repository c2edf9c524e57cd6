# frozen_string_literal: true

require_relative "../clock"

module Memprof
  module Agent
    # The ledger of RSS at the ends of intervals. Reading it takes milliseconds, or a second in a process of
    # many gigabytes, so it is read as often as its share of the time allows.
    class Ledger
      SHARE = 0.001
      private_constant :SHARE

      def initialize(clock: Clock, share: SHARE)
        @clock = clock
        @share = share
        @next = 0
      end

      # Nil if it is not time yet, or if memory can't be measured here.
      def read
        return if @clock.now < @next

        before = @clock.now
        memory = measure
        @next = @clock.now + (@clock.now - before) / @share
        memory
      end

      # Measures in any case.
      def measure
        Memprof.memory
      rescue Error
        nil
      end
    end
  end
end
