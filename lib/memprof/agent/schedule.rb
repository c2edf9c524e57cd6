# frozen_string_literal: true

module Memprof
  module Agent
    # When which periodic task of the agent is due, by a monotonic clock: if the machine was suspended, or the
    # agent had to wait, a task is due once and not as often as it was missed.
    class Schedule
      # `periods` are seconds by name.
      def initialize(periods, clock:)
        @periods = periods
        @clock = clock
        @due = periods.transform_values { |seconds| clock.now + seconds }
      end

      # Seconds until the next task is due; 0 if one is.
      def wait = [@due.values.min - @clock.now, 0].max

      # Names of the tasks that are due now. Each is then due again a period later.
      def due
        now = @clock.now
        names = @due.keys.select { |name| @due[name] <= now }
        names.each { |name| restart(name, now) }
      end

      # Lets a period begin now.
      def begin(name) = restart(name, nil)

      private

      # On the beat of the previous time, unless that has passed as well.
      def restart(name, now)
        period = @periods[name]
        following = now && @due[name] + period
        @due[name] = following && following > now ? following : @clock.now + period
      end
    end
  end
end
