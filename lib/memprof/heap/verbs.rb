# frozen_string_literal: true

require_relative "query_text"

module Memprof
  class Heap
    # Selections that a heap and a list of objects share, named as in sheap.
    module Verbs
      # @return [Objects] strings
      def strings = where("type = STRING")

      # @return [Objects] arrays
      def arrays = where("type = ARRAY")

      # @return [Objects] hashes
      def hashes = where("type = HASH")

      # @return [Objects] structs
      def structs = where("type = STRUCT")

      # @return [Objects] objects with instance variables, of classes written in Ruby
      def plain_objects = where("type = OBJECT")

      # @return [Objects] classes
      def classes = where("type = CLASS")

      # @return [Objects] modules
      def modules = where("type = MODULE")

      # @return [Objects] proxies for included modules in the ancestors of a class
      def iclasses = where("type = ICLASS")

      # @return [Objects] VM-internal objects
      def imemos = where("type = IMEMO")

      # @return [Objects] objects of extensions and of the VM, such as procs and threads
      def datas = where("type = DATA")

      # @return [Objects] files, sockets and other IOs
      def files = where("type = FILE")

      # @return [Objects] regexps
      def regexps = where("type = REGEXP")

      # @return [Objects] MatchData
      def matches = where("type = MATCH")

      # @return [Objects] large integers
      def bignums = where("type = BIGNUM")

      # @return [Objects] symbols that occupy a heap slot
      def symbols = where("type = SYMBOL")

      # @return [Objects] floats that occupy a heap slot
      def floats = where("type = FLOAT")

      # @return [Objects] rational numbers
      def rationals = where("type = RATIONAL")

      # @return [Objects] complex numbers
      def complexes = where("type = COMPLEX")

      # @return [Objects] compiled code
      def iseqs = of_imemo_type(:iseq)

      # @return [Objects] inline caches of method calls
      def callcaches = of_imemo_type(:callcache)

      # @return [Objects] inline caches of constants
      def constcaches = of_imemo_type(:constcache)

      # @return [Objects] call infos that need an object
      def callinfos = of_imemo_type(:callinfo)

      # @return [Objects] lexical scopes
      def crefs = of_imemo_type(:cref)

      # @return [Objects] method entries
      def ments = of_imemo_type(:ment)

      # @return [Objects] procs
      def procs = where("type = DATA and class = Proc")

      # @return [Objects] threads
      def threads = where("type = DATA and class = Thread")

      # @param type [Symbol, String] such as `:string`, `"T_STRING"` or `"ROOT"`
      # @return [Objects]
      # @raise [ArgumentError] if there is no such type
      # @example
      #   Memprof::Heap.capture.of_type(:regexp).first.type_str # => "REGEXP"
      def of_type(type)
        name = word(type).upcase.delete_prefix("T_")
        return roots if name == "ROOT" && respond_to?(:roots)

        where("type = #{name}")
      end

      # @param type [Symbol, String] a type of VM-internal object, such as `:iseq`
      # @return [Objects]
      # @raise [ArgumentError] if the name is invalid
      # @example
      #   Memprof::Heap.capture.of_imemo_type(:iseq).size > 100 # => true
      def of_imemo_type(type) = where("imemo = #{word(type).downcase}")

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

      def word(name)
        text = name.to_s
        text.match?(/\A\w+\z/) ? text : raise(ArgumentError, "#{name.inspect} is not a type")
      end
    end
  end
end
