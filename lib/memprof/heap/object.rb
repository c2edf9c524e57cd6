# frozen_string_literal: true

module Memprof
  class Heap
    # One object of a heap, or a root. It is a handle to the heap's record, not a reference to a live object.
    #
    # @example
    #   string = Memprof::Heap.capture.strings.first
    #   string.type      #=> :string
    #   string.memsize   # bytes of the object itself
    #   string.retained  # bytes that would be free if it were gone
    #   string.referrers # what refers to it
    #   puts string.path # what keeps it alive
    class Object
      # @return [Heap]
      attr_reader :heap

      # @return [Integer] its number in the heap, as `:id` in answers
      attr_reader :id

      # @api private
      # @param label [String, #to_s, nil] label of the reference that led here
      def initialize(heap, id, label = nil)
        @heap = heap
        @id = id
        @label = label
        freeze
      end

      # @return [String] `"0x7f12a0"`; of a root, its name
      def address
        number = native.address(@id)
        number ? format("0x%x", number) : native.class_name(@id)
      end

      # @return [Symbol] its VM type: `:string`, `:object`, `:imemo` ..., `:root`
      def type = native.type(@id).to_sym

      # @return [String] its type as in objspace dumps: `"STRING"`
      def type_str = native.type(@id).upcase

      # @return [Boolean] whether it is a root, not an object
      def root? = native.address(@id).nil?

      # @return [String] name of its class, or a substitute: `"<iseq>"`
      def class_name = native.class_name(@id)

      # @return [Object, nil] its class
      def klass = at(native.class_number(@id))

      # @return [Object, nil] superclass of a class
      def superclass = at(native.superclass_number(@id))

      # @return [Objects] instances of a class
      # @raise [ArgumentError] if it is not a class
      def instances
        raise ArgumentError, "#{inspect} is not a class" unless type == :class

        Objects.new(@heap, native.instances(@id))
      end

      # @return [String, nil] name of a class or module, a VM-internal object, data, or a root
      def name = root? ? native.class_name(@id) : native.name(@id)

      # @return [Integer] bytes of the object itself, as `ObjectSpace.memsize_of` counts them
      def memsize = native.memsize(@id)
      alias_method :size, :memsize

      # @return [Integer] bytes that would be freed with it
      def retained = native.retained(@id)

      # @return [Integer, nil] bytes of its slot
      def slot_size = native.slot_size(@id)

      # @return [Integer, nil] number of elements, or bytes of a text
      def length = native.length(@id)

      # @return [String, nil] text of a string, symbol or regexp, as far as the dump has it
      def value = native.value(@id)

      # @return [String, nil] the file whose code allocated it, if it was tracked
      def file = native.site(@id)&.at(0)

      # @return [Integer, nil] the line that allocated it
      def line = native.site(@id)&.at(1)

      # @return [String, nil] the method that allocated it
      def method_name = native.site(@id)&.at(2)

      # @return [String, nil] where it was allocated, as `"app.rb:5"`
      def location
        file, line, = native.site(@id)
        line ? "#{file}:#{line}" : file
      end

      # @return [Integer, nil] GC runs before it was allocated
      def generation = native.generation(@id)

      # @return [Integer, nil] GC runs that it survived, as the GC counts them: up to 3
      def age = native.age(@id)

      # @return [Integer, nil] number of its shape (Ruby 3.2 and later)
      def shape_id = native.shape(@id)

      # @return [Array<Symbol>] its flags: `:frozen`, `:old`, `:wb_protected`, `:embedded` ...
      def flags = native.flags(@id).map(&:to_sym)

      # @return [Boolean] whether it was frozen in its process. This handle is always frozen
      def frozen? = native.flags(@id).include?("frozen")

      # @return [Boolean] whether the GC considers it old
      def old? = native.flags(@id).include?("old")

      # @return [Boolean] whether a write barrier protects it
      def wb_protected? = native.flags(@id).include?("wb_protected")

      # @return [Objects] objects that it references, besides its class, in its order; each has a {label}
      def references = Objects.new(@heap, native.references(@id))

      # @return [Objects] its referrers, those that retain most first; each has a {label}
      def referrers = Objects.new(@heap, native.referrers(@id))
      alias_method :inverse_references, :referrers

      # The label of the reference that led here, for {references}, {referrers} and steps of a {path}.
      #
      # @return [String, nil] `"@user"`, `"[3]"`, `"[:key]"`, `"STORE"`, `"local name"`
      def label = @label&.to_s

      # The object that the reference with this label leads to.
      #
      # @param label [String] such as `"@user"` or `"[3]"`
      # @return [Object, nil]
      def reference(label) = references.find { |object| object.label == label }

      # @return [Path, nil] a shortest path from a root; nil if it is garbage, reachable from no root
      def path = Path.of(@heap, native.path(@id))

      # @return [Boolean] whether a root reaches it; otherwise it is garbage not collected yet
      def reachable? = native.reachable?(@id)

      # @return [Object, nil] its immediate dominator: all paths to it pass through that object
      def dominator = at(native.dominator(@id))

      # @return [Objects] objects that would be freed with it, itself first
      def retains = Objects.new(@heap, native.retains(@id))

      # Everything known about it, by the names that dumps use.
      #
      # @return [Hash{Symbol => Object}] without unknown values
      def data
        facts = {
          address: address, type: type_str, class: class_name, name: name, value: value, length: length,
          memsize: memsize, slot_size: slot_size, retained: retained, file: file, line: line,
          method: method_name, generation: generation, age: age, shape_id: shape_id,
          object_id: native.object_id_of(@id), flags: flags
        }
        facts.merge!(JSON.parse(native.facts(@id), symbolize_names: true)) unless root?
        facts.compact
      end
      alias_method :to_h, :data

      # @param key [Symbol, String] one of {data}
      # @return [Object, nil]
      def [](key) = data[key.to_sym]

      # @return [Boolean] in one heap: whether it is the same object. Across heaps: whether address and type
      #   agree; a {Diff} knows better whether it is the same object
      def ==(other)
        return false unless Object === other
        return @id == other.id if @heap.equal?(other.heap)

        address == other.address && type == other.type
      end
      alias_method :eql?, :==

      # @return [Integer] equal for equal objects
      def hash = address.hash

      # @return [String] for people: `Session`, `String "user:42"`, `Array (3)`, `class Cache`
      def to_s = native.words(@id)

      # @return [String] for the console: `#<STRING 0x7f12a0 "user:42">`
      def inspect
        hint = root? ? nil : hint()
        "#<#{[type_str, address, hint].compact.join(" ")}>"
      end

      # Everything known, for `pp`; one line when nested.
      #
      # @api private
      def pretty_print(printer)
        return printer.text(inspect) if printer.current_group.depth > 1 || root?

        printer.group(1, "#<#{type_str} #{address}", ">") do
          data.except(:address, :type).each do |key, value|
            printer.breakable
            printer.text("#{key}=")
            printer.pp(value)
          end
        end
      end

      private

      def native = @heap.native

      def at(id) = id && Object.new(@heap, id)

      def hint
        count = native.references(@id).size
        references = "(#{count} refs)" if count.positive?
        [described, references].compact.join(" ").then { |text| text.empty? ? nil : text }
      end

      def described
        case type
        when :class, :module then name || "(anonymous)"
        when :string, :symbol, :regexp then shortened(value)
        when :imemo, :data then name
        when :object, :struct, :iclass then class_name
        end
      end

      def shortened(text) = text && (text.length > 60 ? "#{text[0, 60].inspect}..." : text.inspect)
    end
  end
end
