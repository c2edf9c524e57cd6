# frozen_string_literal: true

require_relative "../paths"

module Memprof
  class Growth
    # How many objects of each site and class, or bytes in them, were alive after each run.
    class Series
      def initialize
        @runs = 0
        @counts = {}
      end

      # Adds what was alive after one more run: `[[count, file, line, class_name], ...]`.
      def add(stats)
        stats.each do |count, file, line, class_name|
          # What memprof allocates while it counts is no growth of the measured program.
          next if Paths.own?(file)

          counts = (@counts[[file, line, class_name]] ||= [])
          counts << 0 while counts.size <= @runs # the runs after which it was not there
          counts[@runs] += count
        end
        @runs += 1
        self
      end

      # `[file, line, class_name]` to counts, one for each run.
      def to_h = @counts.transform_values { |counts| counts + [0] * (@runs - counts.size) }
    end
  end
end
