# frozen_string_literal: true

require_relative "memory_profiler/helpers"
require_relative "memory_profiler/reporter"
require_relative "memory_profiler/results"
require_relative "memory_profiler/top_n"

module Memprof
  # The interface of the gem memory_profiler. `require "memprof/memory_profiler"` gives it that gem's name.
  #
  # @example
  #   require "memprof/memory_profiler"
  #   MemoryProfiler.report(top: 10) { "abc" * 100 }.pretty_print
  module MemoryProfiler
    # The version of memory_profiler whose interface this is, for scripts that print or compare it.
    VERSION = "1.1.0"

    autoload :CLI, "#{__dir__}/memory_profiler/cli"

    class << self
      # Runs a block and reports what it allocated and retained. GC remains enabled.
      #
      # @param options [Hash] `top:`, `trace:`, `allow_files:`, `ignore_files:`, with Symbol or String keys;
      #   see {Reporter#initialize}
      # @yield the code to measure
      # @return [Results]
      # @raise [ArgumentError] if an option is invalid
      # @example
      #   require "memprof/memory_profiler"
      #   MemoryProfiler.report("trace" => String) { String.new }.total_allocated # => 1
      def report(options = {}, &block) = Reporter.report(options, &block)

      # Tracks the whole process from now on; does nothing if it is already tracked.
      #
      # @param options (see #report)
      # @return [void]
      # @raise (see #report)
      # @example
      #   require "memprof/memory_profiler"
      #   MemoryProfiler.start
      #   kept = "abc".dup
      #   MemoryProfiler.stop.total_retained.positive? # => true
      def start(options = {})
        return if Reporter.current_reporter

        Reporter.current_reporter = Reporter.new(options)
        Reporter.current_reporter.start
      end

      # Ends what {start} began.
      #
      # @return [Results, nil] nil if nothing was tracked
      # @example
      #   require "memprof/memory_profiler"
      #   MemoryProfiler.stop # => nil
      def stop
        Reporter.current_reporter&.stop
      ensure
        Reporter.current_reporter = nil
      end
    end
  end
end
