# frozen_string_literal: true

require_relative "loading"
require_relative "native"
require_relative "errors"
require_relative "output"
require_relative "heap/verbs"
require_relative "heap/exports"
require_relative "heap/questions"
require_relative "heap/object"
require_relative "heap/objects"
require_relative "heap/path"
require_relative "heap/diff"
require_relative "heap/subset"
require_relative "heap/verdict"
require_relative "verdict_wording"

module Memprof
  # The heap of a process to ask: what is there, what it takes, and what keeps it alive.
  #
  # It comes from a dump of any format ({open}, {read}), or from the running process ({capture}). Objects and
  # references stay in Rust; {Objects} and {Object} are names for them, made when they are looked at. A heap
  # never changes: threads and, once it is made shareable, Ractors may ask it at the same time. Sizes are
  # bytes.
  #
  # @example What may be a leak in a dump
  #   Memprof.dump_all("heap.memprof")
  #   heap = Memprof::Heap.open("heap.memprof")
  #   heap.leaks[:findings].each { |finding| puts finding[:sentence] }
  #   heap.where("class = String and retained > 1MiB").top(3).each { |string| p string, string.path }
  class Heap
    include Verbs
    include Questions

    ADVICE = "Memprof.dump_all, ObjectSpace.dump_all and `memprof dump` write heap dumps"
    private_constant :ADVICE

    class << self
      # Opens a dump of any format: memprof's, objspace's, binary, compressed or not; or a core file
      # ({Core#heap}), which gets no index. Beside a dump an index is left, with which the next opening takes
      # no time. Other threads run meanwhile, and the opening can be interrupted.
      #
      # @param path [String, Pathname] the dump
      # @param index [Boolean] read the index `PATH.memprof-index` if it is there, and write it if not
      # @param ignore_stack_roots [Boolean] leave out what only the machine stack refers to, which may be
      #   numbers that look like addresses
      # @param max_bytes [Integer, nil] bytes that the dump may have without its compression, for a dump of
      #   unknown origin: then one record of it (a long String, a large Array) may take a sixteenth of that
      #   in memory, at least 64 MiB and at most 512 MiB, else 1 GiB. An index that is there is read in any
      #   case
      # @param blocks [Boolean] of a core file: also blocks of malloc ({Core#heap})
      # @yield about ten times a second, until the heap is open. What the block raises ends the opening
      # @yieldparam stage [Symbol] `:opening`, `:reading`, `:linking`, `:computing` or `:writing`
      # @yieldparam done [Integer] bytes that were read
      # @yieldparam total [Integer, nil] bytes of the dump; nil if that is not known
      # @return [Heap]
      # @raise [ArgumentError] if blocks are asked for and it is no core file
      # @raise [Memprof::InvalidDump] if it is no dump, or was cut before its first object
      # @raise [Memprof::DumpTooLarge] if it, or one record of it, is larger than it may be
      # @raise [Memprof::Error] if it can't be read
      # @example
      #   Memprof.dump_all("heap.memprof")
      #   heap = Memprof::Heap.open("heap.memprof") do |stage, done, total|
      #     puts [stage, done, total].join(" ")
      #   end
      #   heap.size > 1000 # => true
      def open(path, index: true, ignore_stack_roots: false, max_bytes: nil, blocks: false, &progress)
        path = File.path(path)
        if max_bytes.nil? && core?(path)
          return of_core(path, ignore_stack_roots: ignore_stack_roots, blocks: blocks, &progress)
        end
        raise ArgumentError, "blocks are taken from core files only: #{path} has what it has" if blocks

        with_place(path) { new(Native::Heap.open(path, !!index, !!ignore_stack_roots, max_bytes, &progress)) }
      end

      # Reads a dump from an IO to its end: a pipe, standard input. It gets no index.
      #
      # @param io [IO, #read] of which nothing was read yet
      # @param ignore_stack_roots (see .open)
      # @yield (see .open)
      # @yieldparam stage (see .open)
      # @yieldparam done (see .open)
      # @yieldparam total (see .open)
      # @return [Heap]
      # @raise [Memprof::InvalidDump] if it is no dump, or was cut before its first object
      # @raise [Memprof::DumpTooLarge] if one record of it takes more than 1 GiB
      # @raise [Memprof::Error] if it can't be read
      # @example
      #   Memprof.dump_all("heap.json")
      #   heap = IO.popen(["cat", "heap.json"]) { |pipe| Memprof::Heap.read(pipe) }
      #   heap.strings.size > 100 # => true
      def read(io, ignore_stack_roots: false, &progress)
        options = { ignore_stack_roots: ignore_stack_roots }
        return spooled(io) { |file| read(file, **options, &progress) } unless file?(io)

        total = io.respond_to?(:stat) && io.stat.file? ? io.stat.size : 0
        with_place("the dump") { new(Native::Heap.read(io.fileno, total, !!ignore_stack_roots, &progress)) }
      end

      # Takes the heap of this process, as it is, without a dump. See {Capture}.
      #
      # @param gc [Boolean] collect garbage first, so that only what is alive is seen
      # @param ignore_stack_roots (see .open)
      # @yield (see .open)
      # @yieldparam stage (see .open)
      # @yieldparam done (see .open)
      # @yieldparam total (see .open)
      # @return [Capture]
      # @raise [Memprof::Unsupported] in a Ractor other than the first
      # @raise [Memprof::Error] if it can't be done now
      # @example Why is this object alive?
      #   Session = Struct.new(:user)
      #   CACHE = { "user:42" => Session.new("Ann") }
      #   puts Memprof::Heap.capture.path_to(CACHE["user:42"])
      def capture(gc: true, ignore_stack_roots: false, &progress)
        Capture.take(gc: gc, ignore_stack_roots: ignore_stack_roots, &progress)
      end

      private

      def core?(path)
        require_relative "core"
        Core.core?(path)
      end

      def of_core(path, **options, &progress)
        core = Core.open(path)
        with_place(path) { core.heap(**options, &progress) }
      end

      # What the extension raises says what went wrong; only this side knows where.
      def with_place(place)
        yield
      rescue InvalidDump => e
        raise e.class, "can't read #{place}: #{e.message}; #{ADVICE}", cause: nil
      rescue Error => e
        raise e.class, "can't read #{place}: #{e.message}", cause: nil
      end

      def file?(io)
        io.respond_to?(:fileno) && io.fileno
      rescue NotImplementedError, IOError
        false
      end

      def spooled(io)
        raise ArgumentError, "an IO is needed, not #{io.inspect}" unless io.respond_to?(:read)

        Loading.load("tempfile")
        Tempfile.create("memprof", binmode: true) do |file|
          IO.copy_stream(io, file)
          file.rewind
          yield file
        end
      end
    end

    # @api private
    attr_reader :native

    # @api private
    def initialize(native)
      Loading.json
      @native = native.freeze
      freeze
    end

    # Asks the heap a question: the same as the command and the browser ask, by the same words. Methods
    # with names of their own ({Questions}) are easier to call; this one knows all of them.
    #
    # @param question [Symbol, String] `:overview`, `:leaks`, `:histogram`, `:top`, `:object`, `:path`,
    #   `:tree`, `:duplicates`, `:collections`, `:procs` ...
    # @param parameters [Hash{Symbol => Object}] of that question; an {Object} stands for its number, and what
    #   is nil is not given
    # @return [Hash{Symbol => Object}] the answer: numbers of bytes are exact, unknown is nil
    # @raise [ArgumentError] if there is no such question, or parameters are wrong; of a filter that is
    #   wrong, the message shows the place
    # @raise [Memprof::Error] if the index can't be read any more, {InvalidDump} if it is damaged
    # @example
    #   heap = Memprof::Heap.capture
    #   rows = heap.ask(:histogram, by: :class, limit: 3)[:rows]
    #   rows.each { |row| puts row.values_at(:key, :count, :size).join(" ") }
    def ask(question, **parameters) = Heap.answer(@native, question, parameters)

    # Asks something that answers JSON.
    #
    # @api private
    def self.answer(native, question, parameters)
      parameters = parameters.compact.transform_values { |value| Object === value ? value.id : value }
      text = JSON.generate(parameters)
      JSON.parse(native.ask(question.to_s, text), symbolize_names: true, max_nesting: false)
    rescue JSON::GeneratorError => e
      raise ArgumentError, e.message
    end

    # @return [Objects] all objects
    # @example
    #   Memprof::Heap.capture.objects.sum(:size)
    def objects = Objects.new(self, @native.objects)

    # Chooses objects by a filter, in the language of docs/query.md.
    #
    # @param filter [String] such as `class =~ /Session/ and retained > 1MiB`
    # @return [Objects]
    # @raise [ArgumentError] if the filter is wrong; shows where
    # @example
    #   Memprof::Heap.capture.where("type = string and length > 1KiB").first(3)
    def where(filter) = objects.where(filter)

    # @return [Integer] number of objects
    # @example
    #   Memprof::Heap.capture.size
    def size = @native.size
    alias_method :length, :size

    # The object at an address, or the root of a name.
    #
    # @param address [String, Integer] `"0x7f12a0"`, or `"vm"`
    # @return [Object, nil]
    # @example
    #   heap = Memprof::Heap.capture
    #   heap.at(heap.strings.first.address).type # => :string
    def at(address)
      return roots.find { |root| root.name == address } if address.is_a?(String) && !address.start_with?("0x")

      id = @native.at(Integer(address))
      id && Object.new(self, id)
    end

    # Where the roots are: the categories by which the VM finds what is alive.
    #
    # @return [Objects]
    # @example
    #   Memprof::Heap.capture.roots.map(&:name).include?("vm") # => true
    def roots = Objects.new(self, @native.roots)

    # The object whose number an answer has as `:id`.
    #
    # @param id [Integer]
    # @return [Object]
    # @raise [IndexError] if there is none
    # @example
    #   heap = Memprof::Heap.capture
    #   heap[heap.ask(:top, limit: 1)[:objects].first[:id]]
    def [](id)
      @native.these([id]).size == 1 || raise(IndexError, "no object has the number #{id}")
      Object.new(self, id)
    end

    # What refers to each object, by address: for programs that were written for sheap. It is a table of the
    # whole heap, and asking an object for its {Object#referrers} is cheaper.
    #
    # @return [Hash{String => Array<Object>}]
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

    # @return [Hash{String => Object}] each object by its address, as sheap has it; {at} is cheaper
    # @example
    #   Memprof::Heap.capture.objects_by_addr.size > 1000 # => true
    def objects_by_addr = objects.to_h { |object| [object.address, object] }

    # Where the heap comes from and how whole it is.
    #
    # @return [Hash{Symbol => Object}] `:path`, `:format`, `:truncated` (the dump was cut), `:skipped` (broken
    #   lines) and `:first_skipped`, `:missing` (references to no object), `:without_texts`
    # @example
    #   Memprof::Heap.capture.source[:format] # => "live"
    def source = JSON.parse(@native.source, symbolize_names: true)

    # @return [Subset] all of it, for memdump's operations
    # @example
    #   heap = Memprof::Heap.capture
    #   heap.subset.objects_of_class("String").size > 0 # => true
    def subset = Subset.new(self, @native.subset)

    # @return [String] for the console
    # @example
    #   p Memprof::Heap.capture
    def inspect = "#<#{self.class} (#{size} objects)>"
  end
end

require_relative "heap/capture"
