# frozen_string_literal: true

module Memprof
  class Web
    # Nested boxes with areas proportional to their weights, as square as possible: the squarified treemap of
    # Bruls, Huizing and van Wijk (2000).
    module Treemap
      class << self
        def layout(parts, left, top, width, height)
          parts = parts.select { |weight, _| weight.positive? }.sort_by { |weight, _| -weight }
          whole = parts.sum(&:first)
          return [] if whole.zero? || width <= 0 || height <= 0

          scale = (width * height).fdiv(whole)
          areas = parts.map { |weight, thing| [weight * scale, thing] }
          fill(areas, [left.to_f, top.to_f, width.to_f, height.to_f])
        end

        private

        # Adds areas to a row along the shorter side while it gets squarer, then goes on with the rest.
        def fill(areas, room)
          placed = []
          until areas.empty?
            side = [room[2], room[3]].min
            count = 1
            count += 1 while count < areas.size && better?(areas, count, side)
            row = areas.shift(count)
            boxes, room = place(row, room)
            placed.concat(boxes)
          end
          placed
        end

        def better?(areas, count, side)
          worst(areas.first(count + 1), side) <= worst(areas.first(count), side)
        end

        # The worst aspect ratio of a box in such a row.
        def worst(row, side)
          sum = row.sum(&:first)
          largest = row.first.first
          smallest = row.last.first
          [side * side * largest / (sum * sum), sum * sum / (side * side * smallest)].max
        end

        def place(row, (left, top, width, height))
          sum = row.sum(&:first)
          wide = width >= height
          depth = sum / (wide ? height : width)
          along = 0.0
          boxes = row.map do |area, thing|
            length = area / depth
            box = wide ? [left, top + along, depth, length] : [left + along, top, length, depth]
            along += length
            [box, thing]
          end
          return [boxes, [left + depth, top, width - depth, height]] if wide

          [boxes, [left, top + depth, width, height - depth]]
        end
      end
    end
  end
end
