# frozen_string_literal: true

module Memprof
  module MemoryProfiler
    # The largest groups of a Hash whose values have a `memsize`.
    #
    # @example
    #   require "memprof/memory_profiler"
    #   stat = Struct.new(:class_name, :memsize)
    #   stats = { 1 => stat.new("String", 40), 2 => stat.new("Hash", 160) }.extend(MemoryProfiler::TopN)
    #   stats.top_n_memory(1, :class_name) # => [{ data: "Hash", count: 160 }]
    module TopN
      # @param max [Integer] maximum number of groups
      # @param metric_method [Symbol] the method of a value that returns its group
      # @return [Array<Array<Hash>>] what {#top_n_memory} and {#top_n_objects} return
      # @example (see TopN)
      def top_n(max, metric_method)
        [top_n_memory(max, metric_method), top_n_objects(max, metric_method)]
      end

      # @param max (see #top_n)
      # @param metric_method (see #top_n)
      # @return [Array<Hash>] groups with most bytes: `data:`, `count:`
      # @example (see TopN)
      def top_n_memory(max, metric_method) = largest(max, metric_method, &:memsize)

      # @param max (see #top_n)
      # @param metric_method (see #top_n)
      # @return [Array<Hash>] groups with most values: `data:`, `count:`
      # @example (see TopN)
      def top_n_objects(max, metric_method) = largest(max, metric_method) { 1 }

      private

      def largest(max, metric_method)
        sums = Hash.new(0)
        each_value { |stat| sums[stat.public_send(metric_method)] += yield(stat) }
        sums.sort_by { |data, sum| [-sum, data] }.first(max).map { |data, sum| { data: data, count: sum } }
      end
    end
  end
end
