# frozen_string_literal: true

module Memprof
  module Malloc
    # A page with slots of Ruby's heap. Frozen.
    #
    # @example
    #   pages = Memprof::Malloc.heap_pages
    #   pages.sum(&:used) < pages.sum(&:slots) # => true
    class HeapPage
      # @return [Integer] start address
      attr_reader :address
      # @return [Integer] bytes per slot
      attr_reader :slot_size
      # @return [Integer] slots
      attr_reader :slots
      # @return [Integer] slots that contain an object
      attr_reader :used

      # @api private
      def initialize(address, slot_size, slots, used)
        @address = address
        @slot_size = slot_size
        @slots = slots
        @used = used
        freeze
      end

      # @return [String] for the console
      # @example
      #   p Memprof::Malloc.heap_pages.first
      def inspect
        format("#<%s 0x%x: %d of %d slots of %d bytes>", self.class, address, used, slots, slot_size)
      end
    end
  end
end
