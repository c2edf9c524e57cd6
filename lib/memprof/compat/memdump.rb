# frozen_string_literal: true

module Memprof
  class Heap
    # A set of objects and roots with the references between them, to narrow down until only the leak is left:
    # memdump's operations under memdump's names. A set never changes; each operation returns a new one.
    #
    # References to classes do not count unless {with_class_references} adds them. Operations annotate objects
    # with numbers ({annotation}): {parents_of} with `references`, {interface_with} with `keepalive_count`.
    #
    # @example Who holds the strings of a program?
    #   set = Memprof::Heap.capture.subset.common_cleanup
    #   strings = set.objects_of_class("String")
    #   parents, counts = set.parents_of(strings, min: 10)
    #   puts parents.size, counts.first
    #   set.roots_of(strings.sample(0.01)).to_gml("strings.gml")
    class Subset
      include Enumerable

      # No depth limit: no chain of references is this long.
      DEEPEST = (2**32) - 1
      private_constant :DEEPEST

      # @return [Heap]
      attr_reader :heap

      # @api private
      attr_reader :native

      # @api private
      def initialize(heap, native)
        @heap = heap
        @native = native.freeze
        freeze
      end

      # @return [Objects] the members
      def objects = Objects.new(@heap, @native.objects)

      # @yieldparam object [Object]
      # @return [self, Enumerator]
      def each(&block)
        return enum_for(:each) { size } unless block_given?

        objects.each(&block)
        self
      end
      alias_method :each_record, :each

      # @return [Integer]
      def size = @native.size
      alias_method :length, :size

      # @return [Boolean]
      def empty? = size.zero?

      # @param object [Object, String, Integer] a member, or its address
      # @return [Boolean]
      def include?(object)
        object = Object === object ? object : @heap.at(object)
        !object.nil? && @native.include?(object.id)
      end

      # @param address [String, Integer]
      # @return [Object, nil] the member
      def find_by_address(address)
        object = @heap.at(address)
        object if object && @native.include?(object.id)
      end

      # @return [Array<String>] addresses of the members
      def addresses = map(&:address)

      # @param object [Object, String] a member, or its address
      # @return [Objects] the members that it refers to, once each
      def references_of(object) = Objects.new(@heap, @native.references(id_of(object)))

      # @param name [Symbol, String] `:references`, `:keepalive_count`
      # @param object [Object, String] a member, or its address
      # @return [Integer, nil] the number that the member was annotated with
      def annotation(name, object) = @native.annotation(name.to_s, id_of(object))

      # @param type [String, Symbol, Regexp] such as `"STRING"`
      # @return [Subset]
      def objects_of_type(type) = chosen("of_type", named(type))

      # @param name [String, Regexp, Module] of a class
      # @return [Subset]
      def objects_of_class(name) = chosen("of_class", named(name))

      # @param filter [String, nil] as in {Heap#where}; otherwise pass a block
      # @yieldparam object [Object]
      # @return [Subset] the matching members
      # @raise [ArgumentError] if the filter is wrong
      def find_all(filter = nil, &block)
        return chosen("find_all", filter) if filter
        return enum_for(:find_all) unless block_given?

        with(select(&block), "intersection")
      end

      # @param ratio [Float] between 0 and 1
      # @param seed [Integer] the same seed selects the same members
      # @return [Subset] a sample that includes each member with that probability
      def sample(ratio, seed: Random.rand(2**64)) = made(@native.sample(Float(ratio), seed))

      # @return [Array(Integer, Hash{String => Integer})] number of members of unknown type; counts by class
      def stats
        unknown, counts = @native.stats
        [unknown, counts.to_h]
      end

      # @param min [Integer]
      # @return [Hash{Object => Integer}] members with at least that many references, the fewest first
      def out_degree(min: 0) = @native.out_degree(min).to_h { |id, count| [Object.new(@heap, id), count] }

      # Members that reference members of another set.
      #
      # @param other [Subset, Objects]
      # @param min [Integer] require more than this many references
      # @param exclude_dump [Boolean] without members of the other set
      # @return [Array(Subset, Hash{Object => Integer})] the parents, and each one's number of references
      def parents_of(other, min: 0, exclude_dump: false)
        parents = made(@native.parents_of(native_of(other), min, !!exclude_dump))
        [parents, parents.to_h { |object| [object, parents.annotation(:references, object)] }]
      end

      # A shortest path from the roots to each member of a set.
      #
      # @param other [Subset, Objects]
      # @param root_dump [Subset, Objects, nil] start here instead of at the roots
      # @return [Subset] the objects on the paths, with the references between them
      def roots_of(other, root_dump: nil)
        made(@native.roots_of(native_of(other), root_dump && native_of(root_dump)))
      end

      # @param from [Object, String]
      # @param to [Object, String]
      # @return [Array<Object>] a shortest path, both ends included; empty without a path
      def find_path(from, to) = Objects.new(@heap, @native.find_path(id_of(from), id_of(to))).to_a

      # @param root [Subset, Objects] with one member
      # @return [Subset] everything that member reaches, with one reference to each
      # @raise [ArgumentError] unless it has exactly one member
      def minimum_spanning_tree(root) = with(root, "minimum_spanning_tree")

      # @param object [Object, String]
      # @return [Array<Object>] everything it reaches, depth first, itself first
      def depth_first_visit(object)
        visited = Objects.new(@heap, @native.depth_first(id_of(object)))
        return visited.to_a unless block_given?

        visited.each { |member| yield(member) }
      end

      # @param other [Subset, Objects]
      # @return [Object, nil] the nearest member on all paths from the roots to all of these
      def nearest_common_dominator(other)
        id = @native.nearest_common_dominator(native_of(other))
        id && Object.new(@heap, id)
      end

      # @param other [Subset, Objects]
      # @return [Subset] members that reach all of these
      def common_ancestors(other) = with(other, "common_ancestors")

      # Removes members, and connects their referrers with what they referenced.
      #
      # @param entries [Subset, Objects]
      # @return [Subset]
      def collapse(entries) = with(entries, "collapse")

      # @param entries [Subset, Objects]
      # @return [Subset] without these, and without references to them
      def without(entries) = with(entries, "without")
      alias_method :remove, :without

      # A good first step: removes weak references, and collapses sets, arrays, hashes and VM-internal
      # objects.
      #
      # @return [Subset]
      def common_cleanup = made(@native.plain("common_cleanup"))

      # @return [Array(Subset, Array<String>)] the set without references to non-members, and the addresses of
      #   their targets, whether or not the heap has an object there
      def remove_invalid_references
        set, objects, addresses = @native.remove_invalid_references
        others = Objects.new(@heap, objects).map(&:address)
        [made(set), others + addresses.map { |address| format("0x%x", address) }]
      end
      alias_method :cleanup_references, :remove_invalid_references

      # @return [Subset] members that no member references
      def roots = made(@native.plain("roots"))

      # @param parents [Subset, Objects]
      # @return [Subset] these, and what they reference
      def add_children(parents) = with(parents, "add_children")

      # @param max_size [Integer]
      # @return [Subset] without unreferenced members that reach at most that many, and what only they reach
      def remove_small_components(max_size: 1) = with_node("remove_small_components", max_size)

      # @param object [Object, String]
      # @return [Subset] everything that reaches it
      def root_of(object) = with_node("root_of", id_of(object))

      # @param object [Object, String]
      # @param max_depth [Integer] maximum length of a chain of references
      # @return [Subset] everything that it reaches
      def subgraph_of(object, max_depth: DEEPEST)
        with_node("subgraph_of", id_of(object), max_depth.to_f.infinite? ? DEEPEST : max_depth)
      end

      # @param object [Object, String]
      # @return [Subset] members still reachable from the {roots} without this one
      def remove_node(object) = with_node("remove_node", id_of(object))

      # @param from [Subset, Objects]
      # @return [Subset] members reachable from these
      def reachable_from(from) = with(from, "reachable_from")

      # References into a set from members outside of it.
      #
      # @param other [Subset, Objects]
      # @return [Array(Subset, Subset)] the members outside; those inside, annotated with their
      #   `keepalive_count`: how many members each reaches
      def interface_with(other) = @native.interface_with(native_of(other)).map { |native| made(native) }

      # @param other [Subset, Objects]
      # @return [Subset] the other one, annotated with its members' `keepalive_count` in this one
      def update_keepalive_count(other) = with(other, "update_keepalive_count")

      # @param name [String]
      # @param members [Subset, Objects]
      # @return [Subset] with one node of that name instead of the members
      # @raise [ArgumentError] if there are no members
      def group(name, members) = made(@native.group(name.to_s, native_of(members)).first)

      # @return [Subset] the same, including references to classes
      def with_class_references = made(@native.plain("with_class_references"))

      # Does nothing: objects of a {Heap} always have class names.
      #
      # @param add_reference_to_class [Boolean] like {with_class_references}
      # @return [Subset]
      def replace_class(add_reference_to_class: false) = add_reference_to_class ? with_class_references : self
      alias_method :replace_class_id_by_class_name, :replace_class

      # @param other [Subset] of the same heap, or of a later one
      # @return [Subset] members of the other one that are not in this one
      def diff(other) = Subset.new(other.heap, @native.with_set("diff", other.native))

      # @param other [Subset, Objects]
      # @return [Subset] members of both
      def &(other) = with(other, "intersection")

      # @param other [Subset, Objects]
      # @return [Subset] members of either
      def |(other) = with(other, "union")

      # @param other [Subset, Objects]
      # @return [Subset] members that are not in the other
      def -(other) = with(other, "difference")

      # Writes a graph for Gephi, networkx, Cytoscape.
      #
      # @param path_or_io [String, Pathname, IO]
      # @return [nil]
      # @raise [Memprof::Error] if it can't be written
      def to_gml(path_or_io)
        Output.open_named(path_or_io) { |file| @native.to_gml(file.fileno) }
        nil
      end

      # Writes a dump, which can be opened again. memprof's format includes the names of classes that are not
      # members.
      #
      # @param path_or_io [String, Pathname, IO]
      # @param format [Symbol, nil] `:memprof` (JSON lines), `:objspace` or `:binary`; if nil, `:binary` for
      #   names ending in `.memprof`, otherwise `:memprof`
      # @param compression [Symbol, nil] `:none`, `:gzip` or `:zstd`; if nil, by the extension
      # @return [nil]
      # @raise [ArgumentError] if there is no such format
      # @raise [Memprof::Error] if it can't be written
      def save(path_or_io, format: nil, compression: nil)
        require_relative "../dump"
        path = Output.file_path(path_or_io)
        words = Dump::Options.new(path, format: format, compression: compression).to_native
        words = words.values_at(:format, :compression)
        Output.open_named(path_or_io) { |file| @native.save(file.fileno, words) }
        nil
      end

      # @return [String] for the console
      def inspect = "#<#{self.class} (#{size} objects)>"
      alias_method :to_s, :inspect

      private

      def made(native) = Subset.new(@heap, native)

      def chosen(operation, text) = made(@native.chosen(operation, text))

      def with(other, operation) = made(@native.with_set(operation, native_of(other)))

      def with_node(operation, node, depth = 0) = made(@native.with_node(operation, node, depth))

      def of(objects) = @heap.native.subset_of(@heap.native.these(objects.map(&:id)))

      def native_of(other)
        case other
        when Subset then other.native
        when Objects then other.subset.native
        when Object then of([other])
        when Array then of(other)
        else raise ArgumentError, "other must be a Subset or Objects, not #{other.inspect}"
        end
      end

      def id_of(object)
        return object.id if Object === object

        found = @heap.at(object)
        found ? found.id : raise(ArgumentError, "no object has the address #{object}")
      end

      # Names as the extension reads them: `Session`, `/Plan/i`.
      def named(name)
        return name.to_s unless name.is_a?(Regexp)

        "/#{name.source}/#{"i" if name.casefold?}"
      end
    end
  end
end
