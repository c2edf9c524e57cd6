# frozen_string_literal: true

require_relative "../located"

module Memprof
  class Report
    # The objects of one class allocated at one place (file, line and method; with `stack: n` also with one
    # call stack). Frozen; two sites with the same facts are equal.
    class Site
      include Located

      # @return [String] path of the source file, `"(no name)"` if it is unknown
      attr_reader :file
      # @return [Integer] line in the file
      attr_reader :line
      # @return [String] qualified method, as `"Cache#fetch"`
      attr_reader :method_name
      # @return [String] class of the objects; internal objects are named as `"<iseq>"`
      attr_reader :class_name
      # @return [Integer] objects allocated
      attr_reader :allocated_objects
      # @return [Integer] bytes of the objects allocated
      attr_reader :allocated_bytes
      # @return [Integer] objects still alive
      attr_reader :retained_objects
      # @return [Integer] bytes (memsize) of the retained objects
      attr_reader :retained_bytes
      # @return [Integer] objects that were freed
      attr_reader :freed_objects
      # @return [Integer] bytes of the freed objects when they were freed
      attr_reader :freed_bytes
      # @return [Integer] objects that were live, or not yet collected, when memory was largest; 0 unless
      #   tracked with `Memprof.report(peak: true)`
      attr_reader :peak_objects
      # @return [Integer] bytes of the peak objects
      attr_reader :peak_bytes
      # @return [Float] mean age of the freed objects: GC runs survived
      attr_reader :mean_age
      # @return [Integer] age of the oldest freed object
      attr_reader :max_age
      # @return [Array<String>] frames as `"file:line:in method"`, innermost first
      attr_reader :stack

      # @api private
      # @param row [Hash] a row of Native::Profile#sites
      def initialize(row)
        @file = name(row["file"])
        @line = row["line"]
        @method_name = name(row["method"])
        @class_name = name(row["class"])
        @allocated_objects, @allocated_bytes = row["allocated"].values_at("objects", "bytes")
        @retained_objects, @retained_bytes = row["retained"].values_at("objects", "bytes")
        @freed_objects, @freed_bytes = row["freed"].values_at("objects", "bytes")
        @peak_objects, @peak_bytes = row["peak"]&.values_at("objects", "bytes") || [0, 0]
        @mean_age, @max_age = row["ages"].values_at("mean", "max")
        @stack = row["stack"].map { |frame| name(frame) }.freeze
        freeze
      end

      # The gem that the file belongs to.
      #
      # @return [String] as `"rack-2.2.4"`; outside of gems, the name of a part of the standard library or of
      #   the application's folder; `"other"` if that is unknown, too
      # @example
      #   report = Memprof.report { Object.new }
      #   report.map(&:gem).tally
      def gem = Paths.gem_of(file)

      # The frames outside the site: the callers of the allocating method. Empty unless tracked with `stack:
      # n`.
      #
      # @return [Array<String>] frames as `"file:line:in method"`, innermost first
      # @example
      #   report = Memprof.report(stack: 8) { Object.new }
      #   report.first.callers
      def callers
        # A C method precedes it, with the line that called it.
        here = stack.index("#{location}:in #{method_name}")
        here ? stack.drop(here + 1) : []
      end

      # The site as a Hash of plain values, with exact bytes.
      #
      # @return [Hash{Symbol => Object}]
      # @example
      #   report = Memprof.report { Object.new }
      #   report.first.to_h[:allocated] # => {objects: 1, bytes: 40}
      def to_h
        {
          file: file, line: line, method: method_name, class: class_name, gem: gem,
          allocated: { objects: allocated_objects, bytes: allocated_bytes },
          retained: { objects: retained_objects, bytes: retained_bytes },
          freed: { objects: freed_objects, bytes: freed_bytes },
          ages: { mean: mean_age, max: max_age }, **peak, stack: stack
        }
      end

      # The site on one line.
      #
      # @return [String] as `"app.rb:5 String in Cache#fetch: 10 objects allocated, 2 retained"`
      # @example
      #   report = Memprof.report { Object.new }
      #   puts report.first
      def to_s
        place = method_name.empty? ? "" : " in #{method_name}"
        amounts = "#{Units.objects(allocated_objects)} allocated, #{Units.count(retained_objects)} retained"
        Printable.line("#{location} #{class_name}#{place}: #{amounts}")
      end

      # @return [String] for the console
      # @example
      #   report = Memprof.report { Object.new }
      #   p report.first
      def inspect = "#<#{self.class} #{self}>"

      private

      def peak = peak_objects.zero? ? {} : { peak: { objects: peak_objects, bytes: peak_bytes } }

      def name(text) = Printable.utf8(text).freeze
    end
  end
end
