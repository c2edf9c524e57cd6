# frozen_string_literal: true

require "json"
require "memprof"
# Loaded in advance: loading takes a lock, which a signal handler may not. And debuggers call the extension.
require "memprof/native"
require "memprof/census"
require "memprof/dump"

# The gem heap_dump's interface. The gem read Ruby 1.9's internal structures;
# memprof supports every Ruby from 3.1 to 4.0. docs/heap-dump.md lists the differences.
#
# @example
#   HeapDump.dump("heap.json")
module HeapDump
  class << self
    # @return [Boolean] whether {dump} prints its steps on standard output
    attr_accessor :verbose

    # Writes all objects of the process to a file, as one JSON array with one object per line.
    #
    # @param filename [String, Pathname] the file; written atomically
    # @param gc_before_dump [Boolean] run the GC first
    # @return [nil]
    # @raise [TypeError] if it is not a file name
    # @raise [Memprof::Error] if it can't be written
    # @example
    #   HeapDump.dump
    #   File.foreach("dump.json").first.start_with?('[{"id":"_ROOTS_"') # => true
    def dump(filename = "dump.json", gc_before_dump = true)
      if gc_before_dump
        say("collecting garbage")
        GC.start
      end
      dump_ext(filename.respond_to?(:to_path) ? filename.to_path : filename)
    end

    # Counts the objects of the process by type, and those of some classes by class.
    #
    # @param namespaces [Array, Module, String, Symbol] classes and modules, or their names; includes the
    #   classes nested in them
    # @param gc [Boolean] run the GC first
    # @return [String] JSON, indented by four blanks
    # @raise [ArgumentError] if a class has no name
    # @example
    #   require "json"
    #   Shelf = Class.new
    #   kept = Array.new(3) { Shelf.new }
    #   JSON.parse(HeapDump.count_objects([:Shelf]))["user_types"] # => { "Shelf" => 3 }
    def count_objects(namespaces = [], gc = false)
      indented(Memprof.count_objects(*namespaces, gc: gc ? true : false))
    end

    # Stops in the debugger that the process runs under. Without one, the signal kills the process.
    #
    # @return [void]
    # @example In gdb
    #   HeapDump.int3 if ENV["STOP"] # then: call (void)heapdump_dump("heap.json")
    def int3 = Process.kill(:TRAP, Process.pid)

    # {dump} without a GC first.
    #
    # @param filename [String] the file
    # @return [nil]
    # @raise (see #dump)
    # @example
    #   HeapDump.dump_ext("heap.json")
    def dump_ext(filename)
      raise TypeError, "a file's name must be a String, not #{filename.inspect}" unless filename.is_a?(String)

      say("writing #{filename}")
      result = Memprof.dump_all(filename, format: :heap_dump)
      say("wrote #{result.objects} objects, #{result.bytes} bytes")
      nil
    end

    # {count_objects} with names only.
    #
    # @param namespaces [Array<String>] names of classes and modules
    # @param gc [Boolean] run the GC first
    # @return (see #count_objects)
    # @raise [TypeError] if a name is not a String
    # @example
    #   puts HeapDump.count_objects_ext(["Gem"], true)
    def count_objects_ext(namespaces, gc)
      unless namespaces.is_a?(Array) && namespaces.all?(String)
        raise TypeError, "namespaces must be an Array of Strings, not #{namespaces.inspect}"
      end

      count_objects(namespaces, gc)
    end

    private

    def say(what)
      puts "heap_dump: #{what}" if verbose
    end

    def indented(counts) = JSON.generate(counts, indent: "    ", space: " ", object_nl: "\n", array_nl: "\n")
  end

  self.verbose = false
end
