# frozen_string_literal: true

module Memprof
  class Heap
    # Some objects of a heap, in an order: of what was asked, or of their addresses. Only numbers are kept, in
    # Rust, four bytes for each object; an {Object} is made when it is looked at.
    #
    # @example
    #   strings = Memprof::Heap.capture.strings
    #   strings.size
    #   strings.where("length > 100").top(5, by: :size).each { |string| p string }
    class Objects
      include Enumerable
      include Verbs

      # Numbers that are fetched at once.
      BATCH = 1000
      private_constant :BATCH

      # @return [Heap] whose objects they are
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

      # @return [Integer] of all, or of those that equal the argument, or that the block is true for
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

      # By place: one, or so many from there on.
      #
      # @param index [Integer, Range] from the end if it is negative
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
      # @return [Object, nil, Array<Object>] the first, or so many
      # @example
      #   Memprof::Heap.capture.strings.first.type_str # => "STRING"
      def first(count = nil) = count ? part(0, [count, size].min) : part(0, 1).first

      # Those that a filter chooses, too.
      #
      # @param filter (see Heap#where)
      # @return [Objects]
      # @raise (see Heap#where)
      # @example
      #   Memprof::Heap.capture.strings.where("length > 1KiB and not frozen").size
      def where(filter) = these_native(@native.where(filter))

      # Adds up a field of all of them, or what the block says.
      #
      # @param field [Symbol, String, Numeric] `:size`, `:length`, `:slot`, `:references`; `:retained`: see
      #   {#retained}. With a block, what to begin with
      # @yieldparam object [Object]
      # @return [Numeric]
      # @raise [ArgumentError] if there are no sums of that field
      # @example
      #   Memprof::Heap.capture.strings.sum(:size) > 1000 # => true
      def sum(field = 0, &block)
        return super if block || field.is_a?(Numeric)

        @native.sum(field.to_s)
      end

      # @return [Integer] bytes that the objects themselves take
      # @example
      #   Memprof::Heap.capture.strings.memsize
      def memsize = sum(:size)

      # @return [Integer] bytes that would be free if all of them were gone
      # @example
      #   Memprof::Heap.capture.strings.retained
      def retained = sum(:retained)

      # @param other [Objects] of the same heap
      # @return [Objects] those that are in both
      # @raise [ArgumentError] if they are of two heaps
      # @example
      #   heap = Memprof::Heap.capture
      #   (heap.strings & heap.arrays).size # => 0
      def &(other) = these_native(@native.combine(other.native, "and"))

      # @param other [Objects] of the same heap
      # @return [Objects] those that are in either
      # @raise (see #&)
      # @example
      #   heap = Memprof::Heap.capture
      #   (heap.strings | heap.arrays).size == heap.strings.size + heap.arrays.size # => true
      def |(other) = these_native(@native.combine(other.native, "or"))

      # @param other [Objects] of the same heap
      # @return [Objects] those that are not in the other
      # @raise (see #&)
      # @example
      #   heap = Memprof::Heap.capture
      #   (heap.strings - heap.strings).size # => 0
      def -(other) = these_native(@native.combine(other.native, "not"))

      # @return [Subset] these, for memdump's operations
      # @example
      #   Memprof::Heap.capture.strings.subset.stats
      def subset = Subset.new(@heap, @heap.native.subset_of(@native))

      # @return [String] for the console
      # @example
      #   p Memprof::Heap.capture.strings
      def inspect = "#<#{self.class} (#{size} objects)>"

      # The first of them, for `pp`.
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

      # What leads from one object to another; asked for when somebody wants to know.
      #
      # @api private
      Related = Struct.new(:native, :index) do
        def to_s = native.labels(index, 1).first
      end
      private_constant :Related
    end
  end
end
