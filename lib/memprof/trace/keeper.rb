# frozen_string_literal: true

require_relative "../errors"
require_relative "../native"
require_relative "../tracers"

module Memprof
  class Trace
    # Keeps calls interposed, and clients watched for, between the traces of a server, which then only read
    # counters. To replace functions for each request would take longer than many a request. It keeps the
    # traces that have ended, too, for the requests that come next.
    class Keeper
      # So many traces stay ready. A request whose fiber is thrown away never brings its trace back.
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

      def take
        keep
        return Trace.new(@scope, @tracers, lines: @lines) unless @scope == :thread

        trace = Tracers.plan(@tracers).ready.pop || make
        trace.lines = @lines
        trace
      end

      def put_back(trace)
        trace.plan.ready.push(trace) if @scope == :thread
      end

      # Follows clients that were loaded since, without a notice.
      def look
        Tracers::Hooks.look if @clients
      end

      # Sees to it that this process has them interposed from now on.
      def keep
        return if @pid == Process.pid

        @pid = Process.pid
        Tracers::Hooks.keep if @clients
        @native = Native::TraceUpkeep.new(@choice)
      rescue Unsupported
        nil # each trace says so itself, or does without
      end

      # Puts all that back.
      def release
        return unless @pid == Process.pid # in the child of a fork that has been done

        @pid = nil
        Tracers::Hooks.release if @clients
        @native&.release
        @native = nil
      end

      private

      def make
        trace = Trace.new(@scope, @tracers)
        trace.stay if Tracers::Follower.running.size < READY
        trace
      end
    end
  end
end
