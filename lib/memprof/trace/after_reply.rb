# frozen_string_literal: true

module Memprof
  class Trace
    # Work that no client waits for: it is done when the server has sent the reply. Servers that can do so
    # have a list in the Rack env of what is to be called then.
    #
    # A server may come to forget that, as puma 6 does when a body can't be closed. What is left is done
    # before the next request of the same thread, or when the process ends; in any case once.
    class AfterReply
      # Rack 3.1, with falcon and puma 7; called from its end.
      FINISHED = "rack.response_finished"
      # Puma and unicorn; one that raises keeps those behind it from being called.
      REPLIED = "rack.after_reply"
      # What an app has written to the env that talks to the client itself: the env's, and the headers'.
      HIJACKED = "rack.hijack_io"
      HIJACK = "rack.hijack"
      private_constant :FINISHED, :REPLIED, :HIJACKED, :HIJACK

      # What is still to be done, with the thread of its request. Each of the methods that are used of it is
      # done before another thread's turn comes.
      @waiting = {}.compare_by_identity

      class << self
        # Has something written when the server has replied.
        def defer(env, reply, work)
          finished = env[FINISHED]
          list = finished || env[REPLIED]
          return false unless list.is_a?(Array) && !list.frozen? && short?(env, reply)

          deferred = new(work)
          @waiting[deferred] = Thread.current
          finished ? list.push(deferred) : list.unshift(deferred)
          true
        end

        # Does what servers have forgotten of requests whose thread is free again, or is gone.
        def catch_up
          return if @waiting.empty?

          here = Thread.current
          @waiting.to_a.each { |deferred, thread| deferred.call if thread.equal?(here) || !thread.alive? }
        end

        def finish = @waiting.keys.each(&:call)

        # In the child of a fork: what waits is the parent's to do.
        def after_fork
          @waiting = {}.compare_by_identity
        end

        def remove(deferred) = !@waiting.delete(deferred).nil?

        private

        # A body that is a list has been made already. Another may go on for hours, and so may what an app
        # that took over the connection does.
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

      # What the server calls; some say of which request, what the reply was, and what went wrong. Whoever
      # calls is not to blame for what goes wrong here, and may be busy with another request.
      def call(*)
        @work.write if AfterReply.remove(self)
      rescue StandardError => e
        warn "memprof: the trace is lost: #{e.message} (#{e.class})"
      end

      at_exit { finish }
    end
  end
end
