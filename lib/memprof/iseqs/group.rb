# frozen_string_literal: true

require_relative "../printable"

module Memprof
  class Iseqs
    # Entries with the same file, method, label or place. Frozen.
    class Group
      # @return [String] the common file, method, label or place
      attr_reader :name
      # @return [Array<Entry>] most bytes first
      attr_reader :entries
      # @return [Integer] instruction sequences
      attr_reader :count
      # @return [Integer] their bytes
      attr_reader :memsize

      # @api private
      def initialize(name, entries)
        @name = name
        @entries = entries.freeze
        @count = entries.sum(&:count)
        @memsize = entries.sum(&:memsize)
        freeze
      end

      # The group as a Hash of plain values, without its entries.
      #
      # @return [Hash{Symbol => Object}]
      # @example
      #   Memprof.iseqs.by(:file).first.to_h.keys # => [:name, :count, :memsize]
      def to_h = { name: name, count: count, memsize: memsize }

      # @return [String] for the console
      # @example
      #   p Memprof.iseqs.by(:label).first
      def inspect = Printable.line("#<#{self.class} #{name}: #{count} of #{memsize} bytes>")
    end
  end
end
