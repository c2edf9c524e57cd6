# frozen_string_literal: true

require_relative "../errors"
require_relative "../native"
require_relative "../tracers"

module Memprof
  class Trace
    # The traces of a server, reused across requests, and what they share: between requests, calls stay
    # interposed and clients hooked, so that a trace only reads counters. Interposing functions for each
    # request would take longer than many requests.
    class Pool
      # Maximum number of pooled traces. A request whose fiber is discarded never checks its trace in.
      READY = 64
      private_constant :READY

      def initialize(scope = :thread, tracers = nil, lines: nil)
        plan = Trace.new(scope, tracers).plan
        @lines = Lines.wanted(lines, plan) || false
        @scope = scope
        @tracers = tracers
        @choice = plan.choice
        @clients = !plan.clients.empty?
      end

      def checkout
        install
        return Trace.new(@scope, @tracers, lines: @lines) unless @scope == :thread

        trace = Tracers.plan(@tracers).ready.pop || make
        trace.lines = @lines
        trace
      end

      def checkin(trace)
        trace.plan.ready.push(trace) if @scope == :thread
      end

      # Hooks into clients that were loaded since then without notice.
      def refresh
        Tracers::Hooks.refresh if @clients
      end

      # Interposes calls and hooks into clients in this process, until #uninstall.
      def install
        return if @pid == Process.pid

        @pid = Process.pid
        Tracers::Hooks.pin if @clients
        @native = Native::TraceInstallation.new(@choice)
      rescue Unsupported
        nil # each trace reports it, or does without
      end

      def uninstall
        return unless @pid == Process.pid # the child of a fork has nothing to undo

        @pid = nil
        Tracers::Hooks.unpin if @clients
        @native&.release
        @native = nil
      end

      private

      def make
        trace = Trace.new(@scope, @tracers)
        trace.subscribe_permanently if Tracers::Subscriber.running.size < READY
        trace
      end
    end
  end
end
