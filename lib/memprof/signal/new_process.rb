# frozen_string_literal: true

module Memprof
  module OnSignal
    # A process that comes into being as a copy of one that waits for the signal. A child that becomes another
    # program by `system`, `spawn` or backticks is not made this way.
    module NewProcess
      def _fork
        pid = super
        OnSignal.attendant&.forked if pid.zero?
        pid
      end

      # The same program goes on under another id.
      def daemon(...)
        OnSignal.attendant&.moving
        result = super
        OnSignal.attendant&.forked
        result
      end
    end
  end
end
