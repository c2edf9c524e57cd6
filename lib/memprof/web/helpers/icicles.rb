# frozen_string_literal: true

require_relative "../icicle"

module Memprof
  class Web
    module Helpers
      # Flame graphs, drawn by the server; flame.js zooms.
      module Icicles
        ROW = 19 # pixels
        MOST = 320 # frames in the initial drawing
        LEAST = 0.15 # percent of the width
        READABLE = 1.6 # percent: narrower frames have no text
        TINTS = 12
        private_constant :ROW, :MOST, :LEAST, :READABLE, :TINTS

        def icicle(names, frames, unit: :bytes, **attributes)
          boxes = Icicle.new(names, frames).boxes(most: MOST, least: LEAST)
          whole = boxes.first&.total
          drawn = boxes.map { |box| frame(box, yield(box), frame_title(box, whole, unit)) }
          deepest = boxes.map(&:depth).max.to_i
          rows_of_frames(boxes, unit)
          drawing(Html.tag(:svg, drawn, class: "icicle", width: "100%", height: (deepest + 1) * ROW,
            role: "group", data_unit: unit, **attributes))
        end

        def frame_class(name)
          return if name.match?(/\A(?:class|module) |\A\(/)

          name.split("@", 2).first
        end

        private

        def rows_of_frames(boxes, unit)
          rows_of_picture(boxes) do |t|
            t.column("Level", :count, :level) { |box| box.depth }
              .column("Frame", :name, :frame) { |box| box.name }
              .column("Total", unit == :bytes ? :bytes : :count, :total) { |box| box.total }
              .columns(:count) { |box| box.objects }
          end
        end

        def frame(box, target, title)
          text = Html.tag(:text, box.name, x: 4, y: 13) if box.width > READABLE
          inner = Html.tag(:svg, Html.tag(:rect, width: "100%", height: ROW - 1, rx: 2), text,
            x: "#{box.left.round(3)}%", y: box.depth * ROW, width: "#{box.width.round(3)}%", height: ROW - 1)
          Html.tag(:a, Html.tag(:title, title), inner, href: target, class: "tint#{tint(box.name)}",
            data_frame: box.index)
        end

        def frame_title(box, whole, unit)
          weight = unit == :bytes ? Units.bytes(box.total) : Units.objects(box.total)
          share = percent(100.0 * box.total / [whole.to_i, 1].max)
          objects = ", #{plural(box.objects, "object")}" if unit == :bytes && box.objects
          "#{short_name(box.name)}\n#{weight}, #{share}#{objects}"
        end

        def short_name(name) = name.length > 200 ? "#{name[0, 200]}..." : name

        # A class has the same color everywhere; flame.js hashes in the same way.
        def tint(name)
          name.split("@", 2).first.to_s.each_codepoint.reduce(0) { |hash, char|
            (hash * 31 + char) % 9973
          } % TINTS
        end
      end
    end
  end
end
