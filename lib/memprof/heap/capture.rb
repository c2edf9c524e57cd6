# frozen_string_literal: true

# Now, and not when somebody asks: what can't be loaded then (no descriptor left, another root) is no answer.
require_relative "../dump"

module Memprof
  class Heap
    # The heap of this process at one moment. It can be asked about the objects that the program holds, as
    # well as all that a heap of a dump can be asked.
    #
    # It keeps none of them alive: it has their addresses. When `GC.compact` has moved objects since, or an
    # object was allocated later, it says so; only an object of the same class that took the place of one
    # freed since then is taken for that one.
    #
    # The frames that wait for the answer hold what they ask about, too. They are no answer: a path leads
    # through the stack of the thread that asked only if nothing else holds the object.
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
      # Of these classes most objects, or all, are in no slot of the heap.
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
        raise Error, "can't capture the heap: #{e.message}", cause: nil
      end

      # Texts are in a file that never has a name for others to see, so nothing is left of it, however this
      # ends; it goes with the heap. A process that is forked meanwhile has it too, but no name to remove.
      private_class_method def self.walk(ignore_stack_roots, &progress)
        facts = Dump::Facts.of_the_heap(Dump::Options.new(format: :memprof))
        Dump::Spool.nameless do |file|
          compactions = self.compactions
          native = Native::Heap.capture(file.fileno, facts, Thread.current, ignore_stack_roots, &progress)
          new(native, compactions)
        end
      end

      # @api private
      # @return [Integer] how often the collector has moved objects
      def self.compactions = GC.stat[:compact_count].to_i

      # @api private
      def initialize(native, compactions)
        @compactions = compactions
        super(native)
      end

      # What the heap knows of an object of the program.
      #
      # @param live [::Object] any object, or a {Heap::Object} of this heap
      # @return [Heap::Object]
      # @raise [ArgumentError] if it is not an object on the heap, as small integers, nil, true
      # @raise [Memprof::Error] if it was allocated after the capture, or objects were moved since
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

      # What keeps an object alive.
      #
      # @param object [::Object] of the program, or a {Heap::Object}
      # @return [Path, nil] nil if no root leads there: it was garbage
      # @raise (see #object)
      # @example
      #   KEEPER = [Object.new]
      #   Memprof::Heap.capture.path_to(KEEPER.first).to_s # => "KEEPER -> Array[0] -> Object"
      def path_to(object) = self.object(object).path

      # @param object [::Object] of the program, or a {Heap::Object}
      # @return [Integer] bytes that would be free if it were gone
      # @raise (see #object)
      # @example
      #   strings = Array.new(100) { "x" * 1000 }
      #   Memprof::Heap.capture.retained(strings) > 100_000 # => true
      def retained(object) = self.object(object).retained

      # What refers to an object, without who asks about it.
      #
      # @param object [::Object] of the program, or a {Heap::Object}
      # @return [Objects] what retains most first; each with a label
      # @raise (see #object)
      # @example
      #   HOLDER = { key: "value".dup }
      #   Memprof::Heap.capture.referrers(HOLDER[:key]).map(&:label) # => ["[:key]"]
      def referrers(object) = self.object(object).referrers

      # @return [Boolean] whether the collector has moved objects since
      # @example
      #   Memprof::Heap.capture.moved? # => false
      def moved? = Capture.compactions != @compactions

      private

      def one(object) = self.object(object)

      def same_class?(found, live)
        name = name_of(live)
        name.nil? || found.class_name == name
      end

      # The object may have no methods of its own.
      def name_of(live)
        klass = ::Kernel.instance_method(:class).bind_call(live)
        ::Module.instance_method(:name).bind_call(klass)
      end
    end
  end
end
