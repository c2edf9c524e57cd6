# frozen_string_literal: true

# Loaded now, as loading may fail later (no descriptor left, another root).
require_relative "../dump"

module Memprof
  class Heap
    # The heap of this process at one moment. It answers questions about the program's own objects, as well as
    # all questions that the heap of a dump answers.
    #
    # A capture retains none of the objects: it has their addresses. If `GC.compact` has moved objects since,
    # or an object was allocated later, it raises; only an object of the same class in the slot of one freed
    # since then is mistaken for that one.
    #
    # The frames waiting for the answer reference the object, too, but are not the answer: a path leads
    # through the stack of the calling thread only if nothing else retains the object.
    #
    # @example Why is this object alive?
    #   User = Struct.new(:name)
    #   USERS = { 42 => User.new("Ann") }
    #   ann = USERS[42]
    #   capture = Memprof::Heap.capture
    #   puts capture.path_to(ann)
    #   capture.retained(USERS) >= capture.retained(ann) # => true
    #   capture.referrers(ann).first.type                # => :hash
    class Capture < Heap
      # Most or all instances of these classes occupy no heap slot.
      IMMEDIATES = [NilClass, TrueClass, FalseClass, Integer, Float, Symbol].freeze
      private_constant :IMMEDIATES

      # @api private
      def self.take(gc:, ignore_stack_roots:, &progress)
        unless Ractor.current.equal?(Ractor.main)
          raise Unsupported, "only the main Ractor can capture the heap: others run meanwhile"
        end

        Loading.json
        GC.start if gc
        Native.quiet { Dump.still { walk(!!ignore_stack_roots, &progress) } }
      rescue NotRunning, Unsupported
        raise
      rescue Error => e
        raise Error, "cannot capture the heap: #{e.message}", cause: nil
      end

      # Texts are in a nameless file, invisible to others, so nothing is left of it, however this ends; it
      # goes with the heap. A process forked meanwhile has it too, but no name to remove.
      private_class_method def self.walk(ignore_stack_roots, &progress)
        facts = Dump::Facts.of_the_heap(Dump::Options.new(format: :memprof))
        Dump::Spool.nameless do |file|
          compactions = self.compactions
          native = Native::Heap.capture(file.fileno, facts, Thread.current, ignore_stack_roots, &progress)
          new(native, compactions)
        end
      end

      # @api private
      # @return [Integer] how often GC has moved objects
      def self.compactions = GC.stat[:compact_count].to_i

      # @api private
      def initialize(native, compactions)
        @compactions = compactions
        super(native)
      end

      # The heap's record of an object of the program.
      #
      # @param live [::Object] any object, or a {Heap::Object} of this heap
      # @return [Heap::Object]
      # @raise [ArgumentError] if it is not an object on the heap, like small integers, nil, true
      # @raise [Memprof::Error] if it was allocated after the capture, or GC has moved objects since
      # @example
      #   list = [1, 2, 3]
      #   Memprof::Heap.capture.object(list).length # => 3
      def object(live)
        return live if Object === live && live.heap.equal?(self)

        id = @native.find(live)
        if id.nil? && IMMEDIATES.any? { |type| type === live }
          raise ArgumentError, "#{live.inspect} is not an object on the heap"
        end
        raise Error, "objects were moved (GC.compact) after the heap was captured; capture it again" if moved?

        found = id && Object.new(self, id)
        return found if found && same_class?(found, live)

        raise Error, "#{name_of(live)} was allocated after the heap was captured; capture it again"
      end

      # The path that retains an object.
      #
      # @param object [::Object] of the program, or a {Heap::Object}
      # @return [Path, nil] nil if it is unreachable from the roots: it was garbage
      # @raise (see #object)
      # @example
      #   KEEPER = [Object.new]
      #   Memprof::Heap.capture.path_to(KEEPER.first).to_s # => "KEEPER -> Array[0] -> Object"
      def path_to(object) = self.object(object).path

      # @param object [::Object] of the program, or a {Heap::Object}
      # @return [Integer] bytes that would be freed with it
      # @raise (see #object)
      # @example
      #   strings = Array.new(100) { "x" * 1000 }
      #   Memprof::Heap.capture.retained(strings) > 100_000 # => true
      def retained(object) = self.object(object).retained

      # The referrers of an object, without the caller's own references.
      #
      # @param object [::Object] of the program, or a {Heap::Object}
      # @return [Objects] referrers that retain most first; each with a label
      # @raise (see #object)
      # @example
      #   HOLDER = { key: "value".dup }
      #   Memprof::Heap.capture.referrers(HOLDER[:key]).map(&:label) # => ["[:key]"]
      def referrers(object) = self.object(object).referrers

      # @return [Boolean] whether GC has moved objects since
      # @example
      #   Memprof::Heap.capture.moved? # => false
      def moved? = Capture.compactions != @compactions

      private

      def one(object) = self.object(object)

      def same_class?(found, live)
        name = name_of(live)
        name.nil? || found.class_name == name
      end

      # The object may be a BasicObject, without methods.
      def name_of(live)
        klass = ::Kernel.instance_method(:class).bind_call(live)
        ::Module.instance_method(:name).bind_call(klass)
      end
    end
  end
end
