# frozen_string_literal: true

require_relative "../located"
require_relative "../printable"

module Memprof
  class Growth
    # The objects of one class allocated at one line whose number grows from run to run. Frozen.
    class Site
      include Located

      # @return [String] path of the source file
      attr_reader :file
      # @return [Integer] line in the file
      attr_reader :line
      # @return [String] class of the objects
      attr_reader :class_name
      # @return [Float] objects more with each run, the best estimate
      attr_reader :slope
      # @return [Float] objects more with each run, the least that the counts speak for
      attr_reader :low
      # @return [Array<Integer>] objects alive after each run
      attr_reader :counts
      # @return [Float, nil] bytes more with each run; nil if nothing was alive to be measured
      attr_reader :bytes

      # @api private
      def initialize(file:, line:, class_name:, slope:, low:, counts:, bytes: nil)
        @file = Printable.utf8(file).freeze
        @line = line
        @class_name = Printable.utf8(class_name).freeze
        @slope = slope
        @low = low
        @counts = counts.dup.freeze
        @bytes = bytes
        freeze
      end

      # The site as a Hash of plain values.
      #
      # @return [Hash{Symbol => Object}]
      # @example
      #   cache = []
      #   Memprof.growth { cache << Object.new }.first.to_h[:objects_per_run] # => 1.0
      def to_h
        {
          file: file, line: line, class: class_name, objects_per_run: slope, objects_per_run_low: low,
          bytes_per_run: bytes, counts: counts
        }
      end

      # @return [String] for the console
      # @example
      #   cache = []
      #   p Memprof.growth { cache << Object.new }.first
      def inspect
        Printable.line("#<#{self.class} #{location} #{class_name} #{format("%+.2f", slope)} objects a run>")
      end
    end
  end
end
