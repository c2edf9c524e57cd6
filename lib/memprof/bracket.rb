# frozen_string_literal: true

module Memprof
  # Turns something on for a block and off again, however the block ends: even if `Thread#kill`, `Timeout` or
  # an exception from another thread interrupts it just before it begins or just after it ends.
  module Bracket
    # `on` returns whether it turned something on; `off` is called only then. Neither can be interrupted, so
    # neither may take long.
    def self.run(on, off)
      is_on = false
      turn_off = -> {
        off.call if is_on
        is_on = false
      }
      begin
        # Both or neither, so that `is_on` is always correct.
        Thread.handle_interrupt(Object => :never) { is_on = on.call }
        yield
      ensure
        # Twice: an interrupt may arrive before interrupts are deferred.
        begin
          Thread.handle_interrupt(Object => :never) { turn_off.call }
        ensure
          Thread.handle_interrupt(Object => :never) { turn_off.call }
        end
      end
    end
  end
end
