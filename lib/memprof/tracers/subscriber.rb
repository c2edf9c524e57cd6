# frozen_string_literal: true

require_relative "../lock"
require_relative "../native"
require_relative "hooks"

module Memprof
  module Tracers
    # A trace as the tracers of client gems see it: which of them it has, and of which thread it counts calls.
    # A request of a server seldom uses more than one or two clients, so their tracers are made when there is
    # a first call.
    class Subscriber
      NOTHING = {}.freeze
      NONE = [].freeze
      private_constant :NOTHING, :NONE

      @running = NONE
      @lock = Lock.new

      class << self
        def running
          @running
        rescue Ractor::IsolationError
          NONE
        end

        def add(subscriber) = @lock.synchronize { @running = [*@running, subscriber].freeze }

        def remove(subscriber) = @lock.synchronize { @running = without(subscriber) }

        # Hooks into the clients. It is done for good, and the traces of a server have all the same
        # clients.
        def install(clients)
          return if @installed.equal?(clients)

          clients.each_value(&:install)
          @installed = clients
        end

        # In the child of a fork: there are no traces.
        def after_fork
          @lock = Lock.new # its owner may be a thread that the child does not have
          @running = NONE
        end

        private

        def without(subscriber)
          return NONE if @running.size == 1 && @running.first.equal?(subscriber)

          @running.reject { |other| other.equal?(subscriber) }.freeze
        end
      end

      def initialize(clients, process)
        @clients = clients
        @lock = Lock.new if process
        @thread = @fiber = nil
        @counts = nil
        @permanent = @subscribed = false
      end

      # Subscribes for good, also while the trace runs on no thread. For a trace that is started again and
      # again: to subscribe each time takes longer. Hooks.pin keeps the hooks.
      def subscribe_permanently
        @permanent = true
        Subscriber.install(@clients)
        Subscriber.add(self)
      end

      def start
        @counts = nil
        unless @lock
          @thread = Thread.current
          @fiber = (Fiber.current if Fiber.current_scheduler) # others of the thread run before this one ends
        end
        subscribe unless @permanent
      end

      def finish
        @thread = @fiber = nil
        unsubscribe if @subscribed
      end

      def record(tracer, thread, &note)
        return unless (@lock || thread.equal?(@thread)) && @clients.value?(tracer)
        return if @fiber && !@fiber.equal?(Fiber.current)

        @lock ? synchronize(tracer, &note) : yield(client(tracer))
      end

      def reports
        return NOTHING unless @counts

        reports = @counts.to_h { |tracer, client| [@clients.key(tracer), client.report] }
        reports.reject { |_, report| report.empty? }
      end

      private

      # Uninterrupted, and so is the opposite: what was begun is noted.
      def subscribe
        Thread.handle_interrupt(Object => :never) do
          @watches = !Hooks.pinned?
          @watches ? Hooks.start : Hooks.refresh
          Subscriber.install(@clients)
          Subscriber.add(self)
          @subscribed = true
        end
      end

      def unsubscribe
        Thread.handle_interrupt(Object => :never) do
          Subscriber.remove(self)
          Hooks.finish if @watches
          @subscribed = false
        end
      end

      def client(tracer)
        (@counts ||= {})[tracer] ||= tracer.new
      end

      # No lock can be taken in a signal handler, which has interrupted everything else anyway.
      def synchronize(tracer)
        @lock.synchronize { yield client(tracer) }
      rescue ThreadError
        yield client(tracer)
      end
    end
  end
end
