# frozen_string_literal: true

require_relative "../located"
require_relative "../printable"

module Memprof
  class Growth
    # The objects of one class allocated at one line whose number or contents grow from run to run. A
    # container that is older than the first run has no line. Frozen.
    class Site
      include Located

      # @return [String] path of the source file
      attr_reader :file
      # @return [Integer] line in the file; 0 if the container is older than the first run
      attr_reader :line
      # @return [String] class of the objects
      attr_reader :class_name
      # @return [Float] additional objects per run, the best estimate; 0.0 if only the contents grow
      attr_reader :slope
      # @return [Float] additional objects per run, the lower bound that the counts support
      attr_reader :low
      # @return [Array<Integer>] objects alive after each run
      attr_reader :counts
      # @return [Float, nil] additional bytes per run; nil if nothing was alive to be measured
      attr_reader :bytes

      # @return [Array<Integer>, nil] bytes that the objects contain after each run, if only these grow
      attr_reader :contents

      # @return [String, nil] what retains most of the objects, as `POOL -> Array[*] -> Connection@history`;
      #   nil if the heap did not show it
      attr_reader :retained_by

      # @api private
      # @return [Integer, nil] the object's last address, if there is one object and it has no line
      attr_reader :address

      # @api private
      def initialize(file:, line:, class_name:, slope:, low:, counts:, bytes: nil, contents: nil,
        address: nil)
        @file = Printable.utf8(file).freeze
        @line = line
        @class_name = Printable.utf8(class_name).freeze
        @slope = slope
        @low = low
        @counts = counts.dup.freeze
        @bytes = bytes
        @contents = contents&.dup.freeze
        @address = address
        freeze
      end

      # A copy with what retains its objects.
      #
      # @api private
      def with_holder(text)
        dup.tap { |site| site.retained_by = text }.freeze
      end

      # Where the objects were allocated.
      #
      # @return [String] `"file:line"`, or that they are older than the first run
      # @example
      #   cache = []
      #   Memprof.growth { cache << 1 }.first.location # => "(before the first run)"
      def location = line.zero? ? file : super

      # The site as a Hash of plain values.
      #
      # @return [Hash{Symbol => Object}]
      # @example
      #   cache = []
      #   Memprof.growth { cache << Object.new }.first.to_h[:objects_per_run] # => 1.0
      def to_h
        {
          file: file, line: line, class: class_name, objects_per_run: slope, objects_per_run_low: low,
          bytes_per_run: bytes, counts: counts, contents: contents, retained_by: retained_by
        }.reject { |key, value| value.nil? && key != :bytes_per_run }
      end

      # @return [String] for the console
      # @example
      #   cache = []
      #   p Memprof.growth { cache << Object.new }.first
      def inspect
        rate = contents ? "#{format("%+.2f", bytes)} bytes" : "#{format("%+.2f", slope)} objects"
        Printable.line("#<#{self.class} #{location} #{class_name} #{rate} a run>")
      end

      # "String at app.rb:6 retained by NOTES -> Array[*]"; nil if the retainer is unknown.
      #
      # @api private
      def holder
        return unless retained_by

        place = " at #{Paths.short_location(self)}" unless line.zero?
        Printable.line("#{class_name}#{place} retained by #{retained_by}")
      end

      protected

      attr_writer :retained_by
    end
  end
end
