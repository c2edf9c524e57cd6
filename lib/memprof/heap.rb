# frozen_string_literal: true

require_relative "loading"
require_relative "native"
require_relative "errors"
require_relative "output"
require_relative "compat/memdump"
require_relative "heap/verbs"
require_relative "heap/questions"
require_relative "heap/sentences"
require_relative "heap/series"
require_relative "heap/object"
require_relative "heap/objects"
require_relative "heap/path"
require_relative "heap/diff"
require_relative "heap/verdict"
require_relative "verdict_wording"

module Memprof
  # The heap of a process, to query: which objects there are, what they take, and what retains them.
  #
  # A heap comes from a dump of any format ({open}, {read}) or from the running process ({capture}). Objects
  # and references stay in Rust; {Objects} and {Object} are handles, created on access. A heap never changes:
  # threads and, once it is made shareable, Ractors may query it at the same time. Sizes are in bytes.
  #
  # @example What may be a leak in a dump
  #   Memprof.dump_all("heap.memprof")
  #   heap = Memprof::Heap.open("heap.memprof")
  #   heap.leaks[:findings].each { |finding| puts finding[:sentence] }
  #   heap.where("class = String and retained > 1MiB").top(3).each { |string| p string, string.path }
  class Heap
    include Verbs
    include Questions
    include Compat::Sheap::LookUps

    ADVICE = "Memprof.dump_all, ObjectSpace.dump_all and `memprof dump` write heap dumps"
    private_constant :ADVICE

    class << self
      # Opens a dump of any format (memprof's, objspace's, binary, compressed or not) or a core file
      # ({Core#heap}). Leaves an index beside a dump (not a core file), so the next opening is instant. Other
      # threads keep running, and opening can be interrupted.
      #
      # @param path [String, Pathname] the dump
      # @param index [Boolean] read the index `PATH.memprof-index` if it is there, and write it if not
      # @param ignore_stack_roots [Boolean] ignore references found only on the machine stack, which may be
      #   numbers that look like addresses
      # @param max_bytes [Integer, nil] maximum uncompressed size, for a dump of unknown origin. One record (a
      #   long String, a large Array) may then take a sixteenth of that in memory, at least 64 MiB and at most
      #   512 MiB, otherwise 1 GiB. An existing index is always read
      # @param blocks [Boolean] for a core file: also malloc blocks ({Core#heap})
      # @yield about ten times a second, until the heap is open. An exception in the block aborts opening
      # @yieldparam stage [Symbol] `:opening`, `:reading`, `:linking`, `:computing` or `:writing`
      # @yieldparam done [Integer] bytes read
      # @yieldparam total [Integer, nil] bytes of the dump; nil if unknown
      # @return [Heap]
      # @raise [ArgumentError] if blocks are requested and the file is not a core file
      # @raise [Memprof::InvalidDump] if the file is not a dump, or was cut before its first object
      # @raise [Memprof::DumpTooLarge] if the dump, or one record, exceeds its limit
      # @raise [Memprof::Error] if the file can't be read
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
        raise ArgumentError, "blocks: needs a core file, and #{path} is not one" if blocks

        with_place(path) { new(Native::Heap.open(path, !!index, !!ignore_stack_roots, max_bytes, &progress)) }
      end

      # Reads a dump from an IO to its end: a pipe, standard input. No index is written.
      #
      # @param io [IO, #read] not read from yet
      # @param ignore_stack_roots (see .open)
      # @yield (see .open)
      # @yieldparam stage (see .open)
      # @yieldparam done (see .open)
      # @yieldparam total (see .open)
      # @return [Heap]
      # @raise [Memprof::InvalidDump] if it is not a dump, or was cut before its first object
      # @raise [Memprof::DumpTooLarge] if one record takes more than 1 GiB
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

      # Captures the heap of this process as it is, without a dump. See {Capture}.
      #
      # @param gc [Boolean] run GC first, so that only live objects are seen
      # @param ignore_stack_roots (see .open)
      # @yield (see .open)
      # @yieldparam stage (see .open)
      # @yieldparam done (see .open)
      # @yieldparam total (see .open)
      # @return [Capture]
      # @raise [Memprof::Unsupported] in a Ractor other than the first
      # @raise [Memprof::Error] if a capture isn't possible now
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

      # The extension's error says what went wrong; only Ruby knows in which file.
      def with_place(place)
        yield
      rescue InvalidDump => e
        raise e.class, "cannot read #{place}: #{e.message}; #{ADVICE}", cause: nil
      rescue Error => e
        raise e.class, "cannot read #{place}: #{e.message}", cause: nil
      end

      def file?(io)
        io.respond_to?(:fileno) && io.fileno
      rescue NotImplementedError, IOError
        false
      end

      def spooled(io)
        raise ArgumentError, "io must be an IO, not #{io.inspect}" unless io.respond_to?(:read)

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

    # Asks the heap a question, under the name that the command and the browser use. The methods of
    # {Questions} are easier to call; this one knows every question.
    #
    # @param question [Symbol, String] `:overview`, `:leaks`, `:histogram`, `:top`, `:object`, `:path`,
    #   `:tree`, `:duplicates`, `:collections`, `:procs` ...
    # @param parameters [Hash{Symbol => Object}] of that question; an {Object} is passed as its number; nil
    #   values are omitted
    # @return [Hash{Symbol => Object}] the answer: byte counts are exact, unknown values are nil
    # @raise [ArgumentError] if there is no such question, or parameters are wrong; for an invalid filter, the
    #   message shows the place
    # @raise [Memprof::Error] if the index can no longer be read, {InvalidDump} if it is damaged
    # @example
    #   heap = Memprof::Heap.capture
    #   rows = heap.ask(:histogram, by: :class, limit: 3)[:rows]
    #   rows.each { |row| puts row.values_at(:key, :count, :size).join(" ") }
    def ask(question, **parameters) = Heap.answer(@native, question, parameters)

    # Asks a question that is answered in JSON.
    #
    # @api private
    def self.answer(native, question, parameters)
      parameters = parameters.compact.transform_values { |value| Object === value ? value.id : value }
      text = JSON.generate(parameters)
      answer = native.ask(question.to_s, text)
      Sentences.complete(JSON.parse(answer, symbolize_names: true, max_nesting: false))
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
    # @raise [ArgumentError] if the filter is wrong; the message shows where
    # @example
    #   Memprof::Heap.capture.where("type = string and length > 1KiB").first(3)
    def where(filter) = Objects.new(self, @native.where(filter))

    # @return [Integer] number of objects
    # @example
    #   Memprof::Heap.capture.size
    def size = @native.size
    alias_method :length, :size

    # The object at an address, or the root with a name.
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

    # The GC roots: the categories by which the VM finds live objects.
    #
    # @return [Objects]
    # @example
    #   Memprof::Heap.capture.roots.map(&:name).include?("vm") # => true
    def roots = Objects.new(self, @native.roots)

    # The object with the number that an answer has as `:id`.
    #
    # @param id [Integer]
    # @return [Object]
    # @raise [IndexError] if there is no such object
    # @example
    #   heap = Memprof::Heap.capture
    #   heap[heap.ask(:top, limit: 1)[:objects].first[:id]]
    def [](id)
      @native.these([id]).size == 1 || raise(IndexError, "no object has the number #{id}")
      Object.new(self, id)
    end

    # Where the heap comes from and how complete it is.
    #
    # @return [Hash{Symbol => Object}] `:path`, `:format`, `:truncated` (the dump was cut), `:skipped` (broken
    #   lines) and `:first_skipped`, `:missing` (references to no object)
    # @example
    #   Memprof::Heap.capture.source[:format] # => "live"
    def source = JSON.parse(@native.source, symbolize_names: true)

    # @return [Subset] the whole heap as a set, to narrow it down
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
