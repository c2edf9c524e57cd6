# frozen_string_literal: true

require_relative "../clock"
require_relative "../lock"
require_relative "../trace"
require_relative "after_reply"
require_relative "journal"
require_relative "pool"

module Memprof
  class Trace
    # Decides which requests are traced: one in so many, and at most so many a second.
    class Rate
      def initialize(one_in, per_second)
        @one_in = one_in unless one_in == 1
        @per_second = per_second
        @random = Random.new
        @lock = Lock.new
        @left = 0
      end

      # At random, not by counting: requests may follow a pattern.
      def allow?
        return false if @one_in && @random.rand(@one_in).positive?

        @per_second.nil? || @lock.synchronize { take }
      end

      private

      def take
        second = Clock.now.floor
        unless second == @second
          @second = second
          @left = @per_second
        end
        return false if @left.zero?

        @left -= 1
        true
      end
    end

    # Traces requests of a server, for Tracer and Filter: chooses the requests, shares resources between them,
    # and writes the records. Failures here never keep a request from being handled: they are reported once on
    # stderr.
    class Requests
      # A request whose failures never reach the program.
      class Guarded < Request
        def capture_env
          super
        rescue StandardError => e
          @journal.failed(e)
        end

        def call(report, returned)
          super
        rescue StandardError => e
          @journal.failed(e)
        end
      end
      private_constant :Guarded

      def initialize(path: nil, scope: :thread, tracers: nil, except: nil, max_size: nil, when_full: :rotate,
        one_in: nil, per_second: nil, lines: nil)
        { one_in: one_in, per_second: per_second }.each do |name, value|
          next if value.nil? || (value.is_a?(Integer) && value.positive?)

          raise ArgumentError, "#{name} must be a positive Integer, not #{value.inspect}"
        end
        @limits = JournalFile.limits(max_size: max_size, when_full: when_full)
        @pool = Pool.new(scope, Tracers.without(tracers, except), lines: lines)
        @path = path&.to_s
        @opening = Lock.new
        @rate = Rate.new(one_in, per_second)
      end

      # Interposes calls right away, not on the first request.
      def install
        Raised.watch
        @pool.install
      end

      # Runs a block, in a trace if the request is chosen.
      def trace(env, status: nil, later: false, &block)
        trace = checkout
        return yield unless trace

        begin
          run(trace, Guarded.new(env, self, status: status, later: later), &block)
        ensure
          @pool.checkin(trace)
        end
      end

      # Appends a request to the file; a failure is the operator's problem, not the visitor's.
      def write(record)
        @pool.refresh
        journal.write(record)
      rescue StandardError => e
        failed(e)
      end

      def failed(error)
        message = error.is_a?(Error) ? error.message : "#{error.message} (#{error.class})"
        return if @warned

        @warned = true
        Journal.warn_once("the tracer cannot write its report: #{message}")
      end

      private

      # The file that the requests of this process are appended to. A forked process gets its own.
      def journal
        shared_journal || @opening.synchronize do
          unless @pid == Process.pid
            @journal&.close # the parent's, which has its own open
            @journal = nil
            @journal = Journal.file(path, own: @path.nil?, **@limits)
            @pid = Process.pid
          end
          @journal
        end
      end

      # The journal of Memprof.trace_to.
      def shared_journal = Memprof.instance_variable_get(:@trace_journal)

      def path = (@path || File.join(directory, "memprof_tracer-%p.json")).gsub("%p", Process.pid.to_s)

      def directory
        given = ENV.fetch("MEMPROF_DIR", "")
        given.empty? ? "/tmp" : given
      end

      def full?
        journal = shared_journal || (@journal if @pid == Process.pid)
        !journal.nil? && journal.full?
      end

      def checkout
        return if !@rate.allow? || full?

        AfterReply.catch_up
        @pool.checkout
      rescue StandardError => e
        failed(e)
        nil
      end

      # An exception raised before the block begins or after it ends is memprof's own.
      def run(trace, request)
        begun = ended = false
        value = nil
        request.trace(trace) do
          begun = true
          value = yield
          ended = true
          value
        end
      rescue StandardError => e
        raise if begun && !ended

        failed(e)
        ended ? value : yield
      end
    end
  end
end
