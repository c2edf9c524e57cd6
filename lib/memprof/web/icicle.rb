# frozen_string_literal: true

module Memprof
  class Web
    # Positions of the frames of a flame graph that hangs from its root. Frames are lists, as the question
    # `flame` returns them: index of the parent (the first frame is its own), index of the name, own weight,
    # total weight, objects, and the address of one; in a comparison, the total weight before and after.
    class Icicle
      # A drawn frame: its index among all, name, depth, left edge and width in percent, total weight,
      # objects, address of the one that retains most, weights of a comparison.
      Box = Struct.new(:index, :name, :depth, :left, :width, :total, :objects, :address, :before, :after)

      def initialize(names, frames)
        @names = names
        @frames = frames
      end

      def boxes(most:, least:)
        whole = [@frames.dig(0, 3).to_i, 1].max
        kept = @frames.each_index.select { |index| 100.0 * @frames[index][3] >= least * whole }
        kept = kept.max_by(most) { |index| [@frames[index][3], -index] }.sort if kept.size > most
        place(kept, whole)
      end

      private

      # Each frame's widest child is leftmost.
      def place(kept, whole)
        below = kept.reject(&:zero?).group_by { |index| @frames[index][0] }
        boxes = []
        rest = kept.first(1).map { |index| [index, 0, 0.0] }
        until rest.empty?
          index, depth, left = rest.pop
          boxes << box(index, depth, left, whole)
          (below[index] || []).sort_by { |child| [-@frames[child][3], child] }.each do |child|
            rest << [child, depth + 1, left]
            left += 100.0 * @frames[child][3] / whole
          end
        end
        boxes
      end

      def box(index, depth, left, whole)
        _, name, _, total, *rest = @frames[index]
        Box.new(index, @names[name], depth, left, 100.0 * total / whole, total, *rest)
      end
    end
  end
end
