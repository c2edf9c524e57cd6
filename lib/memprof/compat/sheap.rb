# frozen_string_literal: true

module Memprof
  # Interfaces of older tools.
  module Compat
    # sheap's names for what a heap, a list of objects and a diff select, and for what a heap looks up.
    module Sheap
      # A method for each type of object, which returns {Heap::Objects}: `strings`, `arrays`, `hashes`,
      # `structs`, `classes`, `modules`, `files`, `regexps`, `rationals`, `complexes`, `procs`, `threads`;
      # `plain_objects` (with instance variables, of classes written in Ruby), `matches` (MatchData),
      # `bignums` (large integers), `symbols` and `floats` (those that occupy a heap slot), `datas`
      # (objects of extensions and of the VM), `iclasses` (proxies for included modules); and VM-internal
      # objects, `imemos`, with `iseqs` (compiled code), `callcaches`, `constcaches` (inline caches of
      # method calls and constants), `callinfos` (call infos that need an object), `crefs` (lexical
      # scopes) and `ments` (method entries).
      #
      # @example
      #   Memprof::Heap.capture.regexps.first.type_str # => "REGEXP"
      module Types
        # Each method and its filter.
        FILTERS = {
          strings: "type = STRING", arrays: "type = ARRAY", hashes: "type = HASH", structs: "type = STRUCT",
          plain_objects: "type = OBJECT", classes: "type = CLASS", modules: "type = MODULE",
          iclasses: "type = ICLASS", imemos: "type = IMEMO", datas: "type = DATA", files: "type = FILE",
          regexps: "type = REGEXP", matches: "type = MATCH", bignums: "type = BIGNUM",
          symbols: "type = SYMBOL", floats: "type = FLOAT", rationals: "type = RATIONAL",
          complexes: "type = COMPLEX", procs: "type = DATA and class = Proc",
          threads: "type = DATA and class = Thread", iseqs: "imemo = iseq", callcaches: "imemo = callcache",
          constcaches: "imemo = constcache", callinfos: "imemo = callinfo", crefs: "imemo = cref",
          ments: "imemo = ment"
        }.freeze
        private_constant :FILTERS

        # As text, because no Ractor but the first may call a method that is defined by a block.
        FILTERS.each { |name, filter| module_eval("def #{name} = where(#{filter.dump})", __FILE__, __LINE__) }

        # @param type [Symbol, String] such as `:string`, `"T_STRING"` or `"ROOT"`
        # @return [Heap::Objects]
        # @raise [ArgumentError] if the type is unknown
        # @example
        #   Memprof::Heap.capture.of_type(:regexp).first.type_str # => "REGEXP"
        def of_type(type)
          name = word(type).upcase.delete_prefix("T_")
          return roots if name == "ROOT" && respond_to?(:roots)

          where("type = #{name}")
        end

        # @param type [Symbol, String] a type of VM-internal object, such as `:iseq`
        # @return [Heap::Objects]
        # @raise [ArgumentError] if the name is invalid
        # @example
        #   Memprof::Heap.capture.of_imemo_type(:iseq).size > 100 # => true
        def of_imemo_type(type) = where("imemo = #{word(type).downcase}")

        private

        def word(name)
          text = name.to_s
          text.match?(/\A\w+\z/) ? text : raise(ArgumentError, "#{name.inspect} is not a type")
        end
      end

      # Look-ups of a whole heap.
      module LookUps
        # The referrers of each object, by address. This builds a table of the whole heap;
        # {Heap::Object#referrers} of a single object is cheaper.
        #
        # @return [Hash{String => Array<Heap::Object>}]
        # @example
        #   heap = Memprof::Heap.capture
        #   heap.inverse_references[heap.strings.first.address]
        def inverse_references
          objects.each_with_object({}) do |object, table|
            object.references.to_a.uniq.each do |target|
              (table[target.address] ||= []) << object unless target == object
            end
          end
        end

        # @return [Hash{String => Heap::Object}] each object by its address; {Heap#at} is cheaper
        # @example
        #   Memprof::Heap.capture.objects_by_addr.size > 1000 # => true
        def objects_by_addr = objects.to_h { |object| [object.address, object] }

        # A shortest path between objects.
        #
        # @param from [Heap::Object] the start; with one argument, the end of a path from a root
        # @param to [Heap::Object, nil]
        # @return [Array<Heap::Object>, nil] both ends included; nil without a path
        # @example
        #   heap = Memprof::Heap.capture
        #   heap.find_path(heap.class_named("Comparable").first).last.name # => "Comparable"
        def find_path(from, to = nil)
          return one(from).path&.to_a if to.nil?

          path = subset.find_path(one(from), one(to))
          path.empty? ? nil : path
        end
      end
    end
  end
end
