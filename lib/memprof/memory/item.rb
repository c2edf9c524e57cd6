# frozen_string_literal: true

module Memprof
  class Memory
    # A part of the RSS. Frozen.
    class Item
      # @return [Symbol] a stable name, such as `:slots_used`
      attr_reader :key
      # @return [String] for people
      attr_reader :name
      # @return [Integer] resident bytes
      attr_reader :bytes
      # @return [Symbol] `:exact`, `:estimate`, `:difference`
      attr_reader :accuracy

      # @api private
      def initialize(item)
        @key = item[:key].to_sym
        @name = item[:name].freeze
        @bytes = item[:bytes]
        @accuracy = item[:accuracy].to_sym
        freeze
      end

      # @return [String] for the console
      # @example
      #   p Memprof.memory.items.first
      def inspect = "#<#{self.class} #{key}: #{bytes} bytes>"
    end
  end
end
