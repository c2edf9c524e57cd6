# frozen_string_literal: true

require_relative "../../clock"

module Memprof
  class Web
    class Live
      # A question whose answer costs time. It is asked again after `least` seconds, and not before a hundred
      # times the CPU time of the last answer has passed.
      class Sparing
        SHARE = 0.01
        CPU = -> { Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) }
        private_constant :SHARE, :CPU

        # `cpu` gives the CPU time that this thread has used.
        def initialize(least:, clock: Clock, cpu: CPU)
          @least = least
          @clock = clock
          @cpu = cpu
          @next = 0
        end

        # The block's answer; nil, without calling it, if it is not time yet.
        def ask
          now = @clock.now
          return if now < @next

          before = @cpu.call
          begin
            yield
          ensure
            @next = now + [@least, (@cpu.call - before) / SHARE].max
          end
        end

        # Asks the next time in any case.
        def renew = @next = 0
      end
    end
  end
end
