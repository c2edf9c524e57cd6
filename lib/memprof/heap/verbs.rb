# frozen_string_literal: true

require_relative "../compat"

module Memprof
  class Heap
    # Texts in the syntax of the query language (docs/query.md).
    #
    # @api private
    module QueryText
      ESCAPES = { "\\" => "\\\\", '"' => '\\"', "\n" => '\\n', "\r" => '\\r', "\t" => '\\t' }.freeze
      private_constant :ESCAPES

      # @api private
      def self.quoted(text)
        %("#{text.gsub(/[\\"\p{Cc}]/) { |char| ESCAPES.fetch(char) { format("\\u{%x}", char.ord) } }}")
      end
    end

    # Selections that a heap, a list of objects and a diff share.
    module Verbs
      include Compat::Sheap::Types

      # Classes and modules by their name.
      #
      # @param name [String, Symbol, Module]
      # @return [Objects] usually one
      # @example
      #   Memprof::Heap.capture.class_named("Object").first.superclass.name # => "BasicObject"
      def class_named(name)
        where("(type = CLASS or type = MODULE) and not singleton and name = #{QueryText.quoted(name.to_s)}")
      end

      # Direct instances of a class, without those of its subclasses.
      #
      # @param klass [Object, String, Symbol, Module] a class of the heap, or a name
      # @return [Objects]
      # @example
      #   Memprof::Heap.capture.instances_of("String").size > 100 # => true
      def instances_of(klass)
        return where("class = #{QueryText.quoted(klass.to_s)}") unless Object === klass

        within(Objects.new(klass.heap, klass.heap.native.instances(klass.id)))
      end

      # @yieldparam object [Object]
      # @return [Objects] objects for which the block is true. Where a filter can express it, {#where} is a
      #   thousand times faster
      # @example
      #   Memprof::Heap.capture.modules.select { |mod| mod.references.size > 100 }.size
      def filter(&block)
        return enum_for(:filter) unless block_given?

        chosen = []
        objects.each { |object| chosen << object.id if block.call(object) }
        these(chosen)
      end
      alias_method :select, :filter

      # @yieldparam object [Object]
      # @return [Objects] objects for which the block is false
      # @example
      #   Memprof::Heap.capture.classes.reject(&:name).size
      def reject(&block)
        return enum_for(:reject) unless block_given?

        filter { |object| !block.call(object) }
      end

      # @param count [Integer, nil] how many
      # @param random [Random] source of the random numbers
      # @return [Object, nil, Array<Object>] one at random, or an Array of them
      # @example
      #   Memprof::Heap.capture.strings.sample(3).size # => 3
      def sample(count = nil, random: Random)
        all = objects
        return all.empty? ? nil : all[random.rand(all.size)] if count.nil?
        return all.to_a.shuffle(random: random) if count >= all.size

        places = {}
        places[random.rand(all.size)] = true while places.size < count
        places.keys.map { |place| all[place] }
      end

      # @param count [Integer, nil] how many
      # @return [Object, nil, Array<Object>] the last one, or an Array of the last ones
      # @example
      #   Memprof::Heap.capture.strings.last.type # => :string
      def last(count = nil)
        all = objects
        return all.empty? ? nil : all[all.size - 1] if count.nil?

        all[[all.size - count, 0].max, count]
      end

      # The largest objects.
      #
      # @param count [Integer] how many
      # @param by [Symbol, String] `:retained`, `:size`, `:length`, `:slot`, `:references`, `:generation`
      # @return [Objects] largest first
      # @raise [ArgumentError] if objects can't be sorted by that
      # @example
      #   Memprof::Heap.capture.top(3).map(&:retained)
      def top(count = 10, by: :retained) = these_native(objects.native.top(count, by.to_s))

      # @return [Hash{String => Objects}] by class name, most objects first
      # @example
      #   Memprof::Heap.capture.group_by_class.first(3).map { |name, objects| [name, objects.size] }
      def group_by_class = objects.native.by_class.to_h { |name, native| [name, these_native(native)] }

      private

      def within(others) = is_a?(Objects) ? others & self : others
    end
  end
end
