# frozen_string_literal: true

require_relative "../units"

module Memprof
  module Malloc
    # A line of Ruby, or native code, that allocated memory. Its numbers are current at each call.
    #
    # @example
    #   Memprof::Malloc.locations.each { |location| puts "#{location.name} #{location.live_bytes}" }
    class Location
      # @return [String] `file:line`, or native code with its address in brackets
      attr_reader :name

      # @api private
      def initialize(name)
        @name = -name
      end

      # @return [Integer] blocks allocated
      # @example
      #   Memprof::Malloc.locations.sum(&:allocations)
      def allocations = counts[0]

      # @return [Integer] bytes allocated
      # @example
      #   Memprof::Malloc.locations.sum(&:total)
      def total = counts[1]

      # @return [Integer] blocks freed
      # @example
      #   Memprof::Malloc.locations.sum(&:frees)
      def frees = counts[2]

      # @return [Integer] bytes of live blocks, even after {Malloc.reset}
      # @example
      #   Memprof::Malloc.locations.max_by(&:live_bytes)
      def live_bytes = counts[7]

      # @return [Integer] live blocks
      # @example
      #   Memprof::Malloc.locations.sum(&:live)
      def live = counts[6]

      # @return [Float] mean age of freed blocks, in GC runs; infinity if none was freed
      # @example
      #   Memprof::Malloc.locations.map(&:mean_lifespan)
      def mean_lifespan
        frees, age_total = counts.values_at(2, 4)
        frees.zero? ? Float::INFINITY : age_total / frees.to_f
      end

      # @return [Integer] maximum age of a freed block, in GC runs
      # @example
      #   Memprof::Malloc.locations.map(&:max_lifespan).max
      def max_lifespan = counts[5]

      # Calls the block with each live block, in no particular order; in a sampled recording, only with
      # sampled blocks.
      #
      # @yieldparam size [Integer] bytes
      # @yieldparam generation [Integer] `GC.count` when it was allocated
      # @return [self, Enumerator] an Enumerator without a block
      # @example
      #   Memprof::Malloc.locations.first&.each { |size, generation| puts "#{size} #{generation}" }
      def each
        return enum_for(:each) unless block_given?

        now = GC.count
        Native::Malloc.live_blocks(name).each { |size, age| yield size, now - age }
        self
      end

      # @return [String] for the console
      # @example
      #   p Memprof::Malloc.locations.max_by(&:live_bytes)
      def inspect
        facts = ["#{name}: #{Units.bytes(live_bytes)} live", "#{Units.bytes(total)} allocated",
          Units.sampled(Malloc.sample)]
        "#<#{self.class} #{facts.compact.join(", ")}>"
      end

      private

      def counts = Native::Malloc.counts(name) || [0] * 8
    end
  end
end
