# frozen_string_literal: true

module Memprof
  # Draws numbers as a row of block characters.
  module Sparkline
    BLOCKS = "▁▂▃▄▅▆▇█"
    ASCII = "_.-=+*%#"
    private_constant :BLOCKS, :ASCII

    # One character per number; if there are more than `width`, a sample of evenly spaced ones.
    def self.of(numbers, unicode: true, width: 20)
      levels = unicode ? BLOCKS : ASCII
      numbers = thin(numbers, width)
      low, high = numbers.minmax
      return "" if low.nil?

      range = [high - low, 1].max
      numbers.map { |number| levels[(number - low) * (levels.size - 1) / range] }.join
    end

    # The first and the last are always included.
    def self.thin(numbers, width)
      return numbers if numbers.size <= width

      Array.new(width) { |index| numbers[index * (numbers.size - 1) / (width - 1)] }
    end
    private_class_method :thin
  end
end
