# frozen_string_literal: true

require_relative "../lock"
require_relative "../native"
require_relative "hooks"

module Memprof
  module Tracers
    # A trace as the tracers of client gems see it: which of them it has, and whose calls it follows. A
    # request of a server seldom uses more than one or two clients, so their tracers are made when there is a
    # first call.
    class Follower
      NOTHING = {}.freeze
      NOBODY = [].freeze
      private_constant :NOTHING, :NOBODY

      @running = NOBODY
      @lock = Lock.new

      class << self
        def running
          @running
        rescue Ractor::IsolationError
          NOBODY
        end

        def add(follower)
          @lock.synchronize { @running = [*@running, follower].freeze }
        end

        def remove(follower)
          @lock.synchronize { @running = without(follower) }
        end

        # Hooks into the clients. It is done for good, and the traces of a server have all the same
        # clients.
        def listen(clients)
          return if @listening.equal?(clients)

          clients.each_value(&:listen)
          @listening = clients
        end

        # In the child of a fork: there are no traces.
        def after_fork
          @lock = Lock.new # its owner may be a thread that the child does not have
          @running = NOBODY
        end

        private

        def without(follower)
          return NOBODY if @running.size == 1 && @running.first.equal?(follower)

          @running.reject { |other| other.equal?(follower) }.freeze
        end
      end

      def initialize(clients, process)
        @clients = clients
        @lock = Lock.new if process
        @thread = @fiber = nil
        @heard = nil
        @stays = @listens = false
      end

      # Records calls for good, also while it follows no thread. For a trace of a thread that is started
      # again and again: each time anew takes longer. Hooks.keep keeps the hooks.
      def stay
        @stays = true
        Follower.listen(@clients)
        Follower.add(self)
      end

      def start
        @heard = nil
        unless @lock
          @thread = Thread.current
          @fiber = (Fiber.current if Fiber.current_scheduler) # others of the thread run before this one ends
        end
        listen unless @stays
      end

      def finish
        @thread = @fiber = nil
        listen_no_more if @listens
      end

      def record(tracer, thread, &note)
        return unless (@lock || thread.equal?(@thread)) && @clients.value?(tracer)
        return if @fiber && !@fiber.equal?(Fiber.current)

        @lock ? synchronize(tracer, &note) : yield(heard(tracer))
      end

      def reports
        return NOTHING unless @heard

        reports = @heard.to_h { |tracer, client| [@clients.key(tracer), client.report] }
        reports.reject { |_, report| report.empty? }
      end

      private

      # Uninterrupted, and so is the opposite: what was begun is noted.
      def listen
        Thread.handle_interrupt(Object => :never) do
          @watches = !Hooks.kept?
          @watches ? Hooks.start : Hooks.look
          Follower.listen(@clients)
          Follower.add(self)
          @listens = true
        end
      end

      def listen_no_more
        Thread.handle_interrupt(Object => :never) do
          Follower.remove(self)
          Hooks.finish if @watches
          @listens = false
        end
      end

      def heard(tracer)
        (@heard ||= {})[tracer] ||= tracer.new
      end

      # No lock can be taken in a signal handler, which has interrupted everything else anyway.
      def synchronize(tracer)
        @lock.synchronize { yield heard(tracer) }
      rescue ThreadError
        yield heard(tracer)
      end
    end
  end
end
