# frozen_string_literal: true

require_relative "../native"

module Memprof
  class Heap
    # Finds what grows from heap to heap of one process, what retains it, and which line allocated it. Heaps
    # are merged into one tree: objects whose paths from the roots differ only in indices and keys are one
    # node, and nodes are compared. So 400 tenants that gain 40 strings each are one finding, and objects need
    # no identity. Each heap is reduced to that when added; only the last heap is kept.
    #
    # LeakCanary's Shark finds growing objects in the same way (`ObjectGrowthDetector`); BLeak ranks paths by
    # what fixing them would free (Vilk and Berger, PLDI 2018).
    #
    # @example
    #   log = Array.new(100) { |number| "line #{number}" }
    #   verdict = Memprof::Heap::Verdict.new.add(Memprof::Heap.capture)
    #   log.concat(Array.new(5000) { |number| "another line #{number}" })
    #   answer = verdict.add(Memprof::Heap.capture).answer
    #   answer[:findings].any? { |finding| finding[:class] == "String" } # => true
    class Verdict
      def initialize
        @native = Native::Verdict.new
      end

      # Adds a heap: one later than the last, or one of another process at the same time, as workers of a
      # server count together.
      #
      # @param heap [Heap]
      # @param beside [Boolean] whether it is of the same time as the last one
      # @return [self]
      # @raise [Memprof::Error] if its index can no longer be read
      def add(heap, beside: false)
        raise ArgumentError, "heap must be a Memprof::Heap, not #{heap.inspect}" unless heap.is_a?(Heap)

        @native.add(heap.native, beside)
        self
      end

      # The verdict on the heaps so far. Bytes are exact; threads and fibers count with 16 KiB of stack.
      #
      # @param limit [Integer, nil] findings; 3
      # @param threshold [Numeric, nil] for one heap: minimum percentage of the reachable bytes per finding; 1
      # @param own [String, nil] a regexp for paths of application code; by default, every file outside gems
      #   and the standard library
      # @return [Hash{Symbol => Object}] `:findings`, largest gain first, each with `:class`, `:kind`
      #   (`"object"`, `"class"`, `"thread"`, `"fiber"`), `:retained_by` (in parts, places in files apart),
      #   `:trend` (`"grows"`, `"levels_off"`, `"unknown"` for two heaps, `"one_heap"` for what is large in
      #   one), `:count` and `:size` (one number per heap; sizes include descendants), `:gained` (bytes),
      #   `:generations` (first and last of the tracked ones), `:mostly`, `:why`, `:lines`, `:own`,
      #   `:example`; `:heaps`, `:seconds` between the first and the last, `:memory`, `:rss`, `:malloc` (bytes
      #   in use), `:reachable`, `:more`, `:remarks`, and `:unknown`, why growth is unknown, or nil
      # @raise [ArgumentError] if no heap was added, or the threshold or the regexp is invalid
      def answer(limit: nil, own: nil, threshold: nil)
        text = JSON.generate({ limit: limit, own: own, threshold: threshold }.compact)
        Sentences.complete(JSON.parse(@native.answer(text), symbolize_names: true, max_nesting: false))
      end
    end
  end
end
