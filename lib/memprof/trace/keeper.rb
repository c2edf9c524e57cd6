# frozen_string_literal: true

require_relative "../errors"
require_relative "../native"
require_relative "../tracers"
require_relative "new_process"

module Memprof
  class Trace
    # Keeps calls interposed, and clients watched for, between the traces of a server, which then only read
    # counters. To replace functions for each request would take longer than many a request.
    #
    # @api private
    class Keeper
      # @param plan [Tracers::Plan] of the traces that will run
      def initialize(plan)
        @names = plan.native & Native::Trace.call_names
        @clients = !plan.clients.empty?
      end

      # Sees to it that this process has them interposed from now on.
      #
      # @return [void]
      def keep
        return if @pid == Process.pid

        @pid = Process.pid
        Tracers::Hooks.keep if @clients
        return if @names.empty?

        @native = Native::Trace.new(Native::TraceChoice.new(@names, []), false)
        @native.begin
      rescue Unsupported
        nil # each trace says so itself, or does without
      end

      # Puts all that back.
      #
      # @return [void]
      def let_go
        return unless @pid == Process.pid # in the child of a fork that has been done

        @pid = nil
        Tracers::Hooks.let_go if @clients
        @native&.finish
        @native = nil
      end
    end
  end
end
