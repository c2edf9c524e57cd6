# frozen_string_literal: true

module Memprof
  module MemoryProfiler
    # One report in progress, like memory_profiler's class of that name.
    class Reporter
      OPTIONS = %i[top trace allow_files ignore_files].freeze
      private_constant :OPTIONS

      class << self
        # @return [Reporter, nil] the reporter that {MemoryProfiler.start} created
        attr_accessor :current_reporter

        # Runs a block and reports what it allocated and retained.
        #
        # @param options (see Reporter#initialize)
        # @yield the code to measure
        # @return [Results]
        # @raise (see Reporter#initialize)
        # @example
        #   require "memprof/memory_profiler"
        #   MemoryProfiler::Reporter.report(top: 50) { 5.times { "foo".dup } }
        def report(options = {}, &block) = new(options).run(&block)
      end

      # @return [Integer] maximum number of entries per group
      attr_reader :top
      # @return [Array<Class>, nil] the classes that are reported, nil for all
      attr_reader :trace
      # @return [Integer, nil] number of GC runs at the start
      attr_reader :generation
      # @return [Results, nil] what {stop} or {run} returned
      attr_reader :report_results

      # @param options [Hash] with Symbol or String keys; others are ignored, as in memory_profiler
      # @option options [Integer] :top (50) entries of each group
      # @option options [Class, Array<Class>] :trace only objects of these classes
      # @option options [String, Regexp, Array] :allow_files only files that match
      # @option options [String, Regexp, Array] :ignore_files no files that match
      # @raise [ArgumentError] if an option is invalid
      # @example
      #   require "memprof/memory_profiler"
      #   MemoryProfiler::Reporter.new("top" => 10).top # => 10
      def initialize(options = {})
        given = options.to_h.transform_keys(&:to_sym).slice(*OPTIONS).compact
        @top = given.fetch(:top, 50)
        @trace = given[:trace] && Array(given[:trace])
        @filters = given.merge(top: @top)
        Report.check_filters(**@filters)
      end

      # Tracks the whole process from now on.
      #
      # @return [void]
      # @example
      #   require "memprof/memory_profiler"
      #   reporter = MemoryProfiler::Reporter.new
      #   reporter.start
      #   reporter.stop.total_retained # => 0
      def start
        @generation = GC.count
        @session = Session.prepare(strings: true)
        @session.open
      end

      # Ends tracking. Empty unless {start} began it.
      #
      # @return [Results]
      # @example (see #start)
      def stop
        return @report_results = Results.new unless @session

        @session.finish
        @session.collect
        @report_results = Native.quiet { Results.new(@session.profile, internal: false, **@filters) }
      ensure
        @session&.close
        @session = nil
      end

      # Tracks the process while a block runs.
      #
      # @yield the code to measure
      # @return [Results]
      # @example
      #   require "memprof/memory_profiler"
      #   MemoryProfiler::Reporter.new(trace: String).run { String.new }.total_allocated # => 1
      def run
        start
        # As in Memprof.report: references left on the machine stack would make objects count as retained.
        Native.run_deep do
          yield
          nil
        end
        stop
      ensure
        @session&.close
        @session = nil
      end
    end
  end
end
