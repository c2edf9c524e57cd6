# frozen_string_literal: true

module Memprof
  module Agent
    # The measurements of one interval of {Agent}. Frozen.
    #
    # @example The lines that allocate most
    #   Memprof::Agent.subscribe do |interval|
    #     puts interval.report.first(3)
    #   end
    class Interval
      # @return [Time] when it began
      attr_reader :started_at
      # @return [Float] seconds that it lasted
      attr_reader :duration
      # @return [Report] estimates: `allocated` is what was allocated in the interval, `retained` is what was
      #   alive at its end, of all objects allocated since the agent started
      attr_reader :report
      # @return [Hash{Symbol => Numeric}] the collections in the interval: `:minor`, `:major` runs, and their
      #   `:time` in seconds
      attr_reader :gc
      # @return [Memory, nil] where the RSS goes, at the end of the interval; nil if it was not measured: a
      #   ledger that takes long to read is read less often
      attr_reader :memory
      # @return [Integer, nil] resident bytes of the process at the end of the interval; nil if unknown
      attr_reader :rss
      # @return [Hash{Symbol => Numeric}] what the agent itself used: `:cpu` in seconds, `:memory` in bytes
      attr_reader :cost
      # @return [Array<Array>] for each site of the report the standard errors of its allocated objects,
      #   allocated bytes, live objects and live bytes
      attr_reader :errors
      # @return [Array<Array>] for each site of the report the mean and the largest age of its live objects,
      #   in seconds
      attr_reader :ages
      # @return [Hash{Symbol => Object}] `:service`, `:release`, `:host`, `:worker`, `:pid`
      attr_reader :labels

      # @api private
      def initialize(report:, started_at:, duration:, gc: {}, memory: nil, rss: memory&.rss, cost: {},
        errors: [], ages: [], labels: {})
        @report = report
        @started_at = started_at.is_a?(Time) ? started_at : Time.at(started_at)
        @duration = duration
        @gc = gc.freeze
        @memory = memory
        @rss = rss
        @cost = cost.freeze
        @errors = errors
        @ages = ages
        @labels = labels.freeze
        freeze
      end

      # Its numbers as plain values, without the sites.
      #
      # @return [Hash{Symbol => Object}] `:started_at` in seconds since 1970, `:duration`, `:allocated` and
      #   `:retained` with `:objects` and `:bytes`, `:gc`, `:rss` (nil if unknown), `:cost`, `:labels`
      # @example
      #   Memprof::Agent.intervals.map { |interval| interval.to_h[:rss] }
      def to_h
        {
          started_at: @started_at.to_f, duration: @duration,
          allocated: { objects: @report.total_allocated, bytes: @report.total_allocated_memsize },
          retained: { objects: @report.total_retained, bytes: @report.total_retained_memsize },
          gc: @gc, rss: @rss, cost: @cost, labels: @labels
        }
      end

      # @return [String] for the console
      # @example
      #   p Memprof::Agent.intervals.last
      def inspect = format("#<%s %s, %.1f s>", self.class, @started_at.strftime("%F %T"), @duration)
    end
  end
end
