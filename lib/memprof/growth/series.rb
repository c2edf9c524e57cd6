# frozen_string_literal: true

require_relative "../paths"

module Memprof
  class Growth
    # The number of live objects of each site and class, or their bytes, after each run.
    class Series
      def initialize
        @runs = 0
        @counts = {}
      end

      # Adds the live objects after one more run: `[[count, file, line, class_name], ...]`.
      def add(stats)
        stats.each do |count, file, line, class_name|
          # Objects that memprof allocates while it counts are not growth of the measured program.
          next if Paths.own?(file)

          counts = (@counts[[file, line, class_name]] ||= [])
          counts << 0 while counts.size <= @runs # the runs after which it was absent
          counts[@runs] += count
        end
        @runs += 1
        self
      end

      # `[file, line, class_name]` to counts, one per run.
      def to_h = @counts.transform_values { |counts| counts + [0] * (@runs - counts.size) }
    end
  end
end
