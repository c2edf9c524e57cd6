# frozen_string_literal: true

require_relative "../lock"
require_relative "../native"
require_relative "hooks"

module Memprof
  module Tracers
    # A trace from the view of client gem tracers: which of them it has, and whose thread's calls it counts. A
    # request of a server rarely uses more than one or two clients, so their tracers are created on the first
    # call.
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

        # Hooks into the clients. This is permanent, and all traces of a server have the same clients.
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

      # Subscribes permanently, even while the trace runs on no thread. For a trace that is started
      # repeatedly: subscribing each time takes longer. Hooks.pin keeps the hooks.
      def subscribe_permanently
        @permanent = true
        Subscriber.install(@clients)
        Subscriber.add(self)
      end

      def start
        @counts = nil
        unless @lock
          @thread = Thread.current
          @fiber = (Fiber.current if Fiber.current_scheduler) # others of the thread run before it ends
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

      # Uninterruptible, like the opposite: everything started must be registered.
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

      # A signal handler can't take the lock, but it has interrupted everything else anyway.
      def synchronize(tracer)
        @lock.synchronize { yield client(tracer) }
      rescue ThreadError
        yield client(tracer)
      end
    end
  end
end
