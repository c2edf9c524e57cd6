# frozen_string_literal: true

module Memprof
  class Heap
    # The changes between two or three heaps of one process. An object is the same in two heaps if it has the
    # same address, type and class, and its known allocation data agree; see {warnings} for when that may
    # fail.
    #
    # @example
    #   before = Memprof::Heap.capture
    #   LOG = Array.new(50) { |number| "line #{number}" }
    #   diff = before.diff(Memprof::Heap.capture)
    #   diff.grown(limit: 3).each { |row| puts row[:class] }
    #   diff.new.where("value ~ 'line'").size >= 50 # => true
    class Diff
      include Verbs

      # @return [Heap]
      attr_reader :before, :after

      # @return [Heap, nil] the third heap
      attr_reader :later

      # @api private
      def self.between(before, after, later)
        [before, after, later].compact.each do |heap|
          raise ArgumentError, "heap must be a Memprof::Heap, not #{heap.inspect}" unless heap.is_a?(Heap)
        end
        new(before, after, later)
      end

      # @api private
      def initialize(before, after, later)
        @before = before
        @after = after
        @later = later
        @native = Native::Diff.new(before.native, after.native, later&.native).freeze
        freeze
      end

      # @return [Objects] objects of {after} that are not in {before}
      def new = Objects.new(@after, @native.objects("new"))

      # @return [Objects] objects of {before} that are not in {after}
      def gone = Objects.new(@before, @native.objects("gone"))

      # @return [Objects] objects of {after} that are also in {before}
      def kept = Objects.new(@after, @native.objects("kept"))

      # @return [Objects] new objects that are still in {later}
      # @raise [ArgumentError] if there is no third heap
      def survived
        native = @native.objects("survived")
        raise ArgumentError, "this needs a third heap: heap.diff(other, later)" if native.nil?

        Objects.new(@after, native)
      end

      # The objects that the diff is about: with a third heap the surviving ones, otherwise the new ones.
      #
      # @return [Objects]
      def retained = @later ? survived : new
      alias_method :objects, :retained

      # @param filter (see Heap#where)
      # @return [Objects] of {retained}
      # @raise (see Heap#where)
      def where(filter) = retained.where(filter)

      # Groups with more objects than before.
      #
      # @param by [Symbol] `:class`, `:type`, `:site`, `:file`
      # @param limit [Integer, nil] groups
      # @param options [Hash] `where:`, `sort:` (`:size`, `:count`, `:retained`, `:new`, `:survived`)
      # @return [Array<Hash{Symbol => Object}>] with `:before`, `:after`, `:change` of `:count` and `:size`
      # @raise [ArgumentError] if an option is wrong
      def grown(by: :class, limit: nil, **options)
        rows = ask(:rows, by: by, **options)[:rows].select { |row| row[:change][:count].positive? }
        limit ? rows.first(limit) : rows
      end

      # @param options (see #grown)
      # @return [Array<Hash{Symbol => Object}>] all classes
      def by_class(**options) = ask(:rows, by: :class, **options)[:rows]

      # @param options (see #grown)
      # @return [Array<Hash{Symbol => Object}>] lines that allocated objects
      def by_site(**options) = ask(:rows, by: :site, **options)[:rows]

      # @param options [Hash] `where:`, `sort:`, `limit:`
      # @return [Array<Hash{Symbol => Object}>] objects that existed before, and which new ones they reference
      def by_owner(**options) = ask(:owners, **options)[:owners]

      # @param where [String, nil] a filter
      # @return [Hash{Symbol => Object}] `:before`, `:after`, `:new`, `:gone`, `:kept`, each with `:count` and
      #   `:size`
      def totals(where: nil) = ask(:totals, where: where)

      # @return [Hash{Symbol => Object}, nil] RSS growth from the first heap to the last, and its causes:
      #   `:change`, `:objects`, `:iseqs`, `:items`, `:cause`; nil if a dump lacks it
      def memory = ask(:memory)

      # @return [Array<String>] what may make the comparison wrong
      def warnings
        JSON.parse(@native.warnings, symbolize_names: true).map { |fields| Sentences.remark(fields) }
      end

      # Asks a question, like {Heap#ask}.
      #
      # @param question [Symbol, String] `:totals`, `:rows`, `:owners`, `:memory`, `:interface`, `:objects`
      # @param parameters [Hash{Symbol => Object}]
      # @return [Hash{Symbol => Object}]
      # @raise (see Heap#ask)
      def ask(question, **parameters) = Heap.answer(@native, question, parameters)

      # @return [String] for the console
      def inspect = "#<#{self.class} (#{retained.size} objects)>"

      private

      def these(ids) = Objects.new(@after, @after.native.these(ids))

      def these_native(native) = Objects.new(@after, native)
    end
  end
end
