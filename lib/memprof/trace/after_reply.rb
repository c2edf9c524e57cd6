# frozen_string_literal: true

module Memprof
  class Trace
    # Work that no client waits for: it runs after the server has sent the reply. Servers that support this
    # put a list of callables into the Rack env.
    #
    # A server may fail to call them, as puma 6 does when a body can't be closed. Leftover work runs before
    # the thread's next request or when the process ends; always exactly once.
    class AfterReply
      # Rack 3.1, in falcon and puma 7; called in reverse order.
      FINISHED = "rack.response_finished"
      # Puma and unicorn; if one raises, those after it aren't called.
      REPLIED = "rack.after_reply"
      # Set by an app that talks to the client itself: in the env, and in the headers.
      HIJACKED = "rack.hijack_io"
      HIJACK = "rack.hijack"
      private_constant :FINISHED, :REPLIED, :HIJACKED, :HIJACK

      # Pending work, with the thread of its request. Each method called on it completes before another thread
      # is scheduled.
      @waiting = {}.compare_by_identity

      class << self
        # Schedules a record to be written after the server has replied.
        def defer(env, reply, work)
          finished = env[FINISHED]
          list = finished || env[REPLIED]
          return false unless list.is_a?(Array) && !list.frozen? && short?(env, reply)

          deferred = new(work)
          @waiting[deferred] = Thread.current
          finished ? list.push(deferred) : list.unshift(deferred)
          true
        end

        # Does the work that servers dropped, for requests whose thread is free again or gone.
        def catch_up
          return if @waiting.empty?

          here = Thread.current
          @waiting.to_a.each { |deferred, thread| deferred.call if thread.equal?(here) || !thread.alive? }
        end

        def finish = @waiting.keys.each(&:call)

        # In the child of a fork: pending work is the parent's.
        def after_fork
          @waiting = {}.compare_by_identity
        end

        def remove(deferred) = !@waiting.delete(deferred).nil?

        private

        # A body that is a list is complete already. Any other may stream for hours, and so may an app that
        # took over the connection.
        def short?(env, reply)
          return false if !reply.is_a?(Array) || env.key?(HIJACKED)

          headers = reply[1]
          return false if !headers.is_a?(Hash) || headers.key?(HIJACK)

          body = reply[2]
          body.is_a?(Array) || body.respond_to?(:to_ary)
        end
      end

      def initialize(work)
        @work = work
      end

      # Called by the server, sometimes with the request, the response and an error. The caller is not to
      # blame for errors here, and may be busy with another request.
      def call(*)
        @work.write if AfterReply.remove(self)
      rescue StandardError => e
        warn "memprof: the trace is lost: #{e.message} (#{e.class})"
      end

      at_exit { finish }
    end
  end
end
