# frozen_string_literal: true

require_relative "subscriber"
require_relative "hooks"
require_relative "../clock"
require_relative "../native"

module Memprof
  module Tracers
    # A tracer of a client gem. A module prepended to the client, at the one place that all calls pass
    # through, reports to the traces of the calling thread. While no trace runs it only calls `super`.
    #
    # A tracer declares these places with hook, and its instance sums up the calls in #report.
    class Client
      UNINTERRUPTED = { StandardError => :never }.freeze
      private_constant :UNINTERRUPTED

      class << self
        def running = Subscriber.running

        # Runs a block whose errors must not reach the program. Defers interrupts (`Timeout`), which would be
        # mistaken for such errors.
        def guard
          Native.quiet do
            Thread.handle_interrupt(UNINTERRUPTED) do
              yield
            rescue StandardError => e
              failed(e)
            end
          end
        end

        # Overridden by tracers that report errors.
        def failed(_error); end

        # Prepends a module to a class or module of the client, once that is loaded.
        def hook(constant, mod) = Hooks.add(constant, mod)

        # Called when a trace begins, for work that hook can't do.
        def install; end

        # The call begun by a notification, among those running in this fiber: they are nested, the innermost
        # is stored under the name that the tracer returns as `inside`.
        def call_of(event)
          call = Thread.current[inside]
          call = call.outer until call.nil? || call.event.equal?(event)
          call
        end

        # Drops a call that no notification will end.
        def abandon(event)
          call = call_of(event)
          Thread.current[inside] = call.outer if call
        end

        # Runs a call, and lets the tracers count its duration and subject with #measured. (Two arguments, as
        # an Array of them would be an object of the program's.)
        def measure(one = nil, other = nil)
          subscribers = running
          began = Clock.now
          waited = Native.gvl_wait
          begin
            yield
          ensure
            record(subscribers, began, waited) do |client, time, wait|
              client.measured(time, wait, one, other)
            end
          end
        end

        # Reports to the subscribers of the calling thread that a call has ended, successfully or not. Their
        # own allocations for it do not count as the program's. (There is no Proc here either: a block passed
        # on as one would be an object.)
        def record(subscribers, began, waited)
          wait = Native.gvl_wait - waited
          # Two clocks: clamps the difference at 0.
          time = [Clock.now - began - wait, 0.0].max
          Native.quiet do
            thread = Thread.current
            subscribers.each do |subscriber|
              subscriber.record(self, thread) { |client| yield(client, time, wait) }
            end
          end
        end
      end

      private

      # Adds a call to a Hash of `"calls"`, `"time"` and, if it waited for the GVL, `"gvl_wait"`.
      def count(hash, seconds, wait, calls = "calls")
        hash[calls] = hash.fetch(calls, 0) + 1
        hash["time"] = hash.fetch("time", 0.0) + seconds
        hash["gvl_wait"] = hash.fetch("gvl_wait", 0.0) + wait if wait.positive?
      end
    end
  end
end
