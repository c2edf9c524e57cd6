# frozen_string_literal: true

module Memprof
  class Web
    # Where the frames of a flame graph lie that hangs from its root. Frames are lists: the position of the
    # frame above (its own of the first), that of the name, own weight, weight with all below, objects, and
    # the address of one, as the question `flame` answers them.
    class Icicle
      # A frame that is drawn: its position among all, name, depth, left edge and width in percent, weight
      # with all below, objects, address of the one that retains most.
      Box = Struct.new(:index, :name, :depth, :left, :width, :total, :objects, :address)

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

      # The widest of each frame stands at its left.
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
        _, name, _, total, objects, address = @frames[index]
        Box.new(index, @names[name], depth, left, 100.0 * total / whole, total, objects, address)
      end
    end
  end
end
