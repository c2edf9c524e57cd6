# frozen_string_literal: true

module Memprof
  class Middleware
    # Requests that asked what they retain. Until a request is over, its environment references controller and
    # response, and a framework references more, so the objects are inspected in a later request.
    class Pending
      # Maximum number of requests; beyond that, the oldest is dropped.
      KEPT = 4
      # Maximum seconds to wait for the request to end, which its thread may notice later than its client.
      PATIENCE = 1
      STEP = 0.02
      private_constant :KEPT, :PATIENCE, :STEP

      # A request: its finished session, and later its report.
      class Entry
        def initialize(session, request, env)
          @session = session
          @request = request
          @lock = Lock.new
          # Weak, or this would retain the environment.
          @env = ObjectSpace::WeakMap.new
          @env[env] = true
        end

        def summary(limit)
          report = @lock.synchronize { @report ||= look }
          Summary.new(report, @request, retained: true, limit: limit)
        end

        def close = @session.close

        private

        def look
          deadline = Clock.now + PATIENCE
          @session.collect
          until @env.size.zero? || Clock.now > deadline
            sleep(STEP)
            @session.collect
          end
          @session.report
        ensure
          close
        end
      end
      private_constant :Entry

      def initialize
        @lock = Lock.new
        @entries = {}
      end

      # Takes over a finished session. Returns the name of its result.
      def add(session, request, env)
        name = Random.urandom(8).unpack1("H*")
        old = @lock.synchronize do
          @entries[name] = Entry.new(session, request, env)
          @entries.shift.last if @entries.size > KEPT
        end
        old&.close
        name
      end

      # The result of a name, or nil.
      def summary(name, limit) = @lock.synchronize { @entries[name] }&.summary(limit)
    end
  end
end
