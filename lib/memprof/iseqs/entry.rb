# frozen_string_literal: true

require_relative "../located"
require_relative "../printable"

module Memprof
  class Iseqs
    # Replaces a name that the VM does not know (yet): the code is being compiled.
    NO_NAME = "(no name)"
    # The group in {Iseqs#by} for code outside of methods: files, class bodies, blocks in them.
    NOT_IN_A_METHOD = "(no method)"
    private_constant :NO_NAME, :NOT_IN_A_METHOD

    # Instruction sequences with the same names and the same first line; usually one. Frozen.
    class Entry
      include Located

      # @return [String] path of the source file as in a backtrace; `"(eval)"`, or with Ruby 3.3 and later
      #   `"(eval at FILE:LINE)"`, for code evaluated without a path
      attr_reader :file
      # @return [Integer] first line of the code
      attr_reader :line
      # @return [String] such as `"fetch"`, `"block in fetch"` or `"<class:Cache>"`
      attr_reader :label
      # @return [String, nil] name of the method that contains the code
      attr_reader :method_name
      # @return [Integer] instruction sequences
      attr_reader :count
      # @return [Integer] their bytes
      attr_reader :memsize

      # @api private
      def initialize(file, label, method_name, line, count, memsize)
        @file = Printable.utf8(file || NO_NAME).freeze
        @label = Printable.utf8(label || NO_NAME).freeze
        @method_name = method_name && Printable.utf8(method_name).freeze
        @line = line
        @count = count
        @memsize = memsize
        freeze
      end

      # The entry as a Hash of plain values.
      #
      # @return [Hash{Symbol => Object}]
      # @example
      #   Memprof.iseqs.first.to_h.keys.last(2) # => [:count, :memsize]
      def to_h = { file: file, line: line, label: label, method: method_name, count: count, memsize: memsize }

      # @return [String] for the console
      # @example
      #   p Memprof.iseqs.first
      def inspect = Printable.line("#<#{self.class} #{location} #{label}: #{count} of #{memsize} bytes>")
    end
  end
end
