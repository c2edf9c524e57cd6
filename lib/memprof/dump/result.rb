# frozen_string_literal: true

module Memprof
  # Dumps of the heap.
  module Dump
    # The outcome of a dump.
    #
    # @example
    #   result = Memprof.dump_all("heap.json")
    #   result.path # => File.expand_path("heap.json")
    #   result.format # => :memprof
    class Result
      # @return [String, nil] full path of the file; nil if the dump went to an IO
      attr_reader :path
      # @return [Symbol] as the option of {Memprof.dump_all}: `:memprof`, `:binary` ...
      attr_reader :format
      # @return [Integer] objects written
      attr_reader :objects
      # @return [Integer] references between them
      attr_reader :references
      # @return [Integer] bytes of the objects in Ruby's heap and in malloc
      attr_reader :memsize
      # @return [Integer] bytes of the dump itself
      attr_reader :bytes
      # @return [Float] duration
      attr_reader :seconds

      # @api private
      # @param counts [Hash{String => Integer}] from the extension
      def self.from(counts, path:, format:, seconds:)
        numbers = counts.values_at("objects", "references", "memsize", "bytes").map(&:to_i)
        new(path, format, *numbers, seconds)
      end

      # @api private
      def initialize(path, format, objects, references, memsize, bytes, seconds)
        @path = path.nil? ? nil : path.dup.freeze
        @format = format
        @objects = objects
        @references = references
        @memsize = memsize
        @bytes = bytes
        @seconds = seconds
        freeze
      end

      # @return [Hash{Symbol => Object}] the same as a Hash
      # @example
      #   Memprof.dump_all("heap.json").to_h.keys
      #   # => %i[path format objects references memsize bytes seconds]
      def to_h
        { path: path, format: format, objects: objects, references: references, memsize: memsize,
          bytes: bytes, seconds: seconds }
      end
    end
  end
end
