# frozen_string_literal: true

module Memprof
  class Report
    # The totals of a report by gem, file, location, class and method, under memory_profiler's names.
    # Each returns an Array of `{data: name, count: number}`, most first, at most the report's `top` entries.
    module Groups
      # Bytes of the objects allocated, by gem.
      #
      # @return [Array<Hash{Symbol => Object}>] `{data:, count:}`, most first
      # @example
      #   Memprof.report { Object.new }.allocated_memory_by_gem
      def allocated_memory_by_gem = group("allocated", "gem", "memory")

      # Bytes of the objects allocated, by source file.
      #
      # @return [Array<Hash{Symbol => Object}>] `{data:, count:}`, most first
      # @example
      #   Memprof.report { Object.new }.allocated_memory_by_file
      def allocated_memory_by_file = group("allocated", "file", "memory")

      # Bytes of the objects allocated, by file and line.
      #
      # @return [Array<Hash{Symbol => Object}>] `{data:, count:}`, most first
      # @example
      #   Memprof.report { Object.new }.allocated_memory_by_location
      def allocated_memory_by_location = group("allocated", "location", "memory")

      # Bytes of the objects allocated, by class.
      #
      # @return [Array<Hash{Symbol => Object}>] `{data:, count:}`, most first
      # @example
      #   Memprof.report { Object.new }.allocated_memory_by_class
      def allocated_memory_by_class = group("allocated", "class", "memory")

      # Bytes of the objects allocated, by method.
      #
      # @return [Array<Hash{Symbol => Object}>] `{data:, count:}`, most first
      # @example
      #   Memprof.report { Object.new }.allocated_memory_by_method
      def allocated_memory_by_method = group("allocated", "method", "memory")

      # Objects allocated, by gem.
      #
      # @return [Array<Hash{Symbol => Object}>] `{data:, count:}`, most first
      # @example
      #   Memprof.report { Object.new }.allocated_objects_by_gem
      def allocated_objects_by_gem = group("allocated", "gem", "objects")

      # Objects allocated, by source file.
      #
      # @return [Array<Hash{Symbol => Object}>] `{data:, count:}`, most first
      # @example
      #   Memprof.report { Object.new }.allocated_objects_by_file
      def allocated_objects_by_file = group("allocated", "file", "objects")

      # Objects allocated, by file and line.
      #
      # @return [Array<Hash{Symbol => Object}>] `{data:, count:}`, most first
      # @example
      #   Memprof.report { Object.new }.allocated_objects_by_location
      def allocated_objects_by_location = group("allocated", "location", "objects")

      # Objects allocated, by class.
      #
      # @return [Array<Hash{Symbol => Object}>] `{data:, count:}`, most first
      # @example
      #   Memprof.report { Object.new }.allocated_objects_by_class
      def allocated_objects_by_class = group("allocated", "class", "objects")

      # Objects allocated, by method.
      #
      # @return [Array<Hash{Symbol => Object}>] `{data:, count:}`, most first
      # @example
      #   Memprof.report { Object.new }.allocated_objects_by_method
      def allocated_objects_by_method = group("allocated", "method", "objects")

      # Bytes of the objects still alive at the end, by gem.
      #
      # @return [Array<Hash{Symbol => Object}>] `{data:, count:}`, most first
      # @example
      #   Memprof.report { Object.new }.retained_memory_by_gem
      def retained_memory_by_gem = group("retained", "gem", "memory")

      # Bytes of the objects still alive at the end, by source file.
      #
      # @return [Array<Hash{Symbol => Object}>] `{data:, count:}`, most first
      # @example
      #   Memprof.report { Object.new }.retained_memory_by_file
      def retained_memory_by_file = group("retained", "file", "memory")

      # Bytes of the objects still alive at the end, by file and line.
      #
      # @return [Array<Hash{Symbol => Object}>] `{data:, count:}`, most first
      # @example
      #   Memprof.report { Object.new }.retained_memory_by_location
      def retained_memory_by_location = group("retained", "location", "memory")

      # Bytes of the objects still alive at the end, by class.
      #
      # @return [Array<Hash{Symbol => Object}>] `{data:, count:}`, most first
      # @example
      #   Memprof.report { Object.new }.retained_memory_by_class
      def retained_memory_by_class = group("retained", "class", "memory")

      # Bytes of the objects still alive at the end, by method.
      #
      # @return [Array<Hash{Symbol => Object}>] `{data:, count:}`, most first
      # @example
      #   Memprof.report { Object.new }.retained_memory_by_method
      def retained_memory_by_method = group("retained", "method", "memory")

      # Objects still alive at the end, by gem.
      #
      # @return [Array<Hash{Symbol => Object}>] `{data:, count:}`, most first
      # @example
      #   Memprof.report { Object.new }.retained_objects_by_gem
      def retained_objects_by_gem = group("retained", "gem", "objects")

      # Objects still alive at the end, by source file.
      #
      # @return [Array<Hash{Symbol => Object}>] `{data:, count:}`, most first
      # @example
      #   Memprof.report { Object.new }.retained_objects_by_file
      def retained_objects_by_file = group("retained", "file", "objects")

      # Objects still alive at the end, by file and line.
      #
      # @return [Array<Hash{Symbol => Object}>] `{data:, count:}`, most first
      # @example
      #   Memprof.report { Object.new }.retained_objects_by_location
      def retained_objects_by_location = group("retained", "location", "objects")

      # Objects still alive at the end, by class.
      #
      # @return [Array<Hash{Symbol => Object}>] `{data:, count:}`, most first
      # @example
      #   Memprof.report { Object.new }.retained_objects_by_class
      def retained_objects_by_class = group("retained", "class", "objects")

      # Objects still alive at the end, by method.
      #
      # @return [Array<Hash{Symbol => Object}>] `{data:, count:}`, most first
      # @example
      #   Memprof.report { Object.new }.retained_objects_by_method
      def retained_objects_by_method = group("retained", "method", "objects")

      private

      def group(kind, by, sort)
        @groups ||= {}
        @groups[[kind, by, sort]] ||= profile.group(kind, by, sort, top).map do |label, objects, bytes|
          { data: Printable.utf8(label), count: sort == "memory" ? bytes : objects }.freeze
        end.freeze
      end
    end
  end
end
