# frozen_string_literal: true

module Memprof
  class Heap
    # An ordered list of objects of a heap: as asked for, or by address. Only numbers are stored, in Rust,
    # four bytes per object; an {Object} is created on access.
    #
    # @example
    #   strings = Memprof::Heap.capture.strings
    #   strings.size
    #   strings.where("length > 100").top(5, by: :size).each { |string| p string }
    class Objects
      include Enumerable
      include Verbs

      # Number of ids fetched at once.
      BATCH = 1000
      private_constant :BATCH

      # @return [Heap] the heap of the objects
      attr_reader :heap

      # @api private
      attr_reader :native

      # @api private
      def initialize(heap, native)
        @heap = heap
        @native = native.freeze
        @related = !native.labels(0, 0).nil?
        freeze
      end

      # @return [Objects] these
      # @api private
      def objects = self

      # @yieldparam object [Object]
      # @return [self, Enumerator]
      # @example
      #   Memprof::Heap.capture.strings.each { |string| break string.value }
      def each(&block)
        return enum_for(:each) { size } unless block_given?

        (0...size).step(BATCH) { |start| part(start, BATCH).each(&block) }
        self
      end

      # @return [Integer]
      # @example
      #   Memprof::Heap.capture.strings.size > 100 # => true
      def size = @native.size
      alias_method :length, :size

      # @return [Boolean]
      # @example
      #   Memprof::Heap.capture.where("length > 1GiB").empty? # => true
      def empty? = size.zero?

      # @return [Integer] number of all, of those equal to the argument, or of those the block is true for
      # @example
      #   Memprof::Heap.capture.strings.count(&:frozen?)
      def count(*args, &block)
        args.empty? && block.nil? ? size : super
      end

      # @param object [Object]
      # @return [Boolean] whether it is one of them
      # @example
      #   heap = Memprof::Heap.capture
      #   heap.arrays.include?(heap.strings.first) # => false
      def include?(object) = Object === object && object.heap.equal?(@heap) && @native.include?(object.id)
      alias_method :member?, :include?

      # By index: one object, or several from there on.
      #
      # @param index [Integer, Range] counted from the end if negative
      # @param count [Integer, nil]
      # @return [Object, nil, Array<Object>]
      # @example
      #   Memprof::Heap.capture.strings[0, 3].size # => 3
      def [](index, count = nil)
        if index.is_a?(Range)
          places = (0...size).to_a[index]
          return places && part(places.first || 0, places.size)
        end
        index += size if index.negative?
        return if index.negative?

        count ? part(index, [count, size].min) : part(index, 1).first
      end

      # @param count [Integer, nil] how many
      # @return [Object, nil, Array<Object>] the first one, or an Array of the first ones
      # @example
      #   Memprof::Heap.capture.strings.first.type_str # => "STRING"
      def first(count = nil) = count ? part(0, [count, size].min) : part(0, 1).first

      # Narrows the list by another filter.
      #
      # @param filter (see Heap#where)
      # @return [Objects]
      # @raise (see Heap#where)
      # @example
      #   Memprof::Heap.capture.strings.where("length > 1KiB and not frozen").size
      def where(filter) = these_native(@native.where(filter))

      # Sums up a field of all objects, or the block's values.
      #
      # @param field [Symbol, String, Numeric] `:size`, `:length`, `:slot`, `:references`; `:retained`: see
      #   {#retained}. With a block, the initial value
      # @yieldparam object [Object]
      # @return [Numeric]
      # @raise [ArgumentError] if that field can't be summed
      # @example
      #   Memprof::Heap.capture.strings.sum(:size) > 1000 # => true
      def sum(field = 0, &block)
        return super if block || field.is_a?(Numeric)

        @native.sum(field.to_s)
      end

      # @return [Integer] total shallow size in bytes
      # @example
      #   Memprof::Heap.capture.strings.memsize
      def memsize = sum(:size)

      # @return [Integer] bytes that would be freed with all of them
      # @example
      #   Memprof::Heap.capture.strings.retained
      def retained = sum(:retained)

      # @param other [Objects] of the same heap
      # @return [Objects] the objects in both
      # @raise [ArgumentError] if they are of different heaps
      # @example
      #   heap = Memprof::Heap.capture
      #   (heap.strings & heap.arrays).size # => 0
      def &(other) = these_native(@native.combine(other.native, "and"))

      # @param other [Objects] of the same heap
      # @return [Objects] the objects in either
      # @raise (see #&)
      # @example
      #   heap = Memprof::Heap.capture
      #   (heap.strings | heap.arrays).size == heap.strings.size + heap.arrays.size # => true
      def |(other) = these_native(@native.combine(other.native, "or"))

      # @param other [Objects] of the same heap
      # @return [Objects] the objects that are not in the other
      # @raise (see #&)
      # @example
      #   heap = Memprof::Heap.capture
      #   (heap.strings - heap.strings).size # => 0
      def -(other) = these_native(@native.combine(other.native, "not"))

      # @return [Subset] these as a set, to narrow it down
      # @example
      #   Memprof::Heap.capture.strings.subset.stats
      def subset = Subset.new(@heap, @heap.native.subset_of(@native))

      # @return [String] for the console
      # @example
      #   p Memprof::Heap.capture.strings
      def inspect = "#<#{self.class} (#{size} objects)>"

      # The first objects, for `pp`.
      #
      # @api private
      def pretty_print(printer)
        shown = size <= 20 ? to_a : first(4)
        printer.group(1, "[", "]") do
          printer.seplist(shown) { |object| printer.pp(object) }
          next if shown.size == size

          printer.comma_breakable
          printer.text("... (#{size - shown.size} more)")
        end
      end

      private

      def part(start, count)
        ids = @native.slice(start, count)
        return ids.map { |id| Object.new(@heap, id) } unless @related

        ids.each_with_index.map { |id, index| Object.new(@heap, id, Related.new(@native, start + index)) }
      end

      def these(ids) = these_native(@heap.native.these(ids))

      def these_native(native) = Objects.new(@heap, native)

      # The label of the reference between two objects, fetched lazily.
      #
      # @api private
      Related = Struct.new(:native, :index) do
        def to_s = native.labels(index, 1).first
      end
      private_constant :Related
    end
  end
end
