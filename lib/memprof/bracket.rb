# frozen_string_literal: true

module Memprof
  # What is turned on for a block, and off again however the block ends: also if `Thread#kill`, `Timeout` or
  # an exception from another thread comes before it begins, or when it has just ended.
  module Bracket
    # `on` says whether it turned something on; only then `off` is called. Neither is interrupted, so neither
    # may take long.
    def self.run(on, off)
      is_on = false
      turn_off = -> {
        off.call if is_on
        is_on = false
      }
      begin
        # Both or neither: what is on is known to be.
        Thread.handle_interrupt(Object => :never) { is_on = on.call }
        yield
      ensure
        # Twice: an interrupt may come here, before they are held off.
        begin
          Thread.handle_interrupt(Object => :never) { turn_off.call }
        ensure
          Thread.handle_interrupt(Object => :never) { turn_off.call }
        end
      end
    end
  end
end
