# frozen_string_literal: true

module Memprof
  module Rails
    # The bytes of slots that the process has allocated up to now. Memory outside of slots, by malloc, is not
    # among them: Ruby counts that only from one GC to the next.
    #
    # @api private
    module SlotBytes
      COUNT = :total_allocated_objects
      private_constant :COUNT

      class << self
        # Nil if Ruby does not count the slots of each size, as 3.2.
        def total
          sizes = @sizes
          return unless sizes
          return GC.stat(COUNT) * sizes[0] if sizes.one?

          bytes = index = 0
          while (size = sizes[index])
            bytes += GC.stat_heap(index, COUNT) * size
            index += 1
          end
          bytes
        end

        private

        # The size of a slot in each heap; nil if their slots are not counted. Ruby 3.1 has one.
        def sizes
          return [GC::INTERNAL_CONSTANTS.fetch(:RVALUE_SIZE)] unless GC.respond_to?(:stat_heap)

          heaps = GC.stat_heap.values
          heaps.map { |heap| heap.fetch(:slot_size) } if heaps.any? && heaps.all? { |heap| heap.key?(COUNT) }
        rescue KeyError, NotImplementedError
          nil # another garbage collector
        end
      end

      @sizes = sizes&.freeze
    end
  end
end
