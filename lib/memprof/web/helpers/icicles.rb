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
        WIDTH = 1200 # of the picture, where it is not known
        LETTER = 7.2 # pixels, on average
        TICKS = 4
        private_constant :ROW, :MOST, :LEAST, :READABLE, :TINTS, :WIDTH, :LETTER, :TICKS

        def icicle(names, frames, unit: :bytes, **attributes)
          boxes = Icicle.new(names, frames).boxes(most: MOST, least: LEAST)
          whole = boxes.first&.total
          drawn = boxes.map { |box| frame(box, yield(box), frame_title(box, whole, unit)) }
          deepest = boxes.map(&:depth).max.to_i
          rows_of_frames(boxes, unit)
          picture = drawing(Html.tag(:svg, drawn, class: "icicle", width: "100%", height: (deepest + 1) * ROW,
            role: "group", aria_label: "Flame graph", data_unit: unit, **attributes))
          Html.join([flame_axis(whole.to_i, unit, hidden: !boxes.first&.before.nil?), picture])
        end

        # Where a frame of retained memory leads: to the one object, or its class.
        def frame_url(box)
          name = frame_class(box.name)
          return if box.address.nil?

          box.objects == 1 || name.nil? ? object_url(box.address) : class_url(name)
        end

        def frame_class(name)
          return if name.match?(/\A(?:class|module) |\A\(/)

          name.split("@", 2).first
        end

        private

        # Weights along the top, unless widths stand for two, and where the zoomed frame is; flame.js
        # updates both.
        def flame_axis(whole, unit, hidden:)
          ticks = (0..TICKS).map do |number|
            weight = (whole.fdiv(TICKS) * number).round
            Html.tag(:span, unit == :bytes ? Units.bytes(weight) : Units.count(weight))
          end
          part = Html.tag(:rect, width: "100%", height: "100%")
          map = Html.tag(:svg, part, class: "flame-map", hidden: true)
          Html.tag(:div, [*ticks, map], class: "flame-axis", aria_hidden: "true", hidden: hidden)
        end

        def rows_of_frames(boxes, unit)
          rows_of_picture(boxes) do |t|
            t.columns(:level) { |box| box.depth }
              .columns(:frame) { |box| box.name }
              .columns(:frame_total, as: :total, kind: unit == :bytes ? :bytes : :count) { |box| box.total }
              .columns(:count) { |box| box.objects }
          end
        end

        def frame(box, target, title)
          text = label_in(box.name, box.width * WIDTH / 100) if box.width > READABLE
          inner = Html.tag(:svg, Html.tag(:rect, width: "100%", height: ROW - 1, rx: 2), text,
            x: "#{box.left.round(3)}%", y: box.depth * ROW, width: "#{box.width.round(3)}%", height: ROW - 1)
          Html.tag(:a, Html.tag(:title, title), inner, href: target, data_frame: box.index,
            class: box.before ? heat(box.before, box.after) : "tint#{tint(box.name)}")
        end

        # Grown or shrunk, by quarters of the larger weight; flame.js does the same.
        def heat(before, after)
          return "same" if before == after

          level = (4.0 * (after - before).abs / [before, after].max).ceil
          "#{after > before ? "grew" : "shrank"}#{level}"
        end

        def frame_title(box, whole, unit)
          return "#{short_name(box.name)}\n#{change_of(box, unit)}" if box.before

          weight = weight_of(box.total, unit)
          share = percent(100.0 * box.total / [whole.to_i, 1].max)
          objects = ", #{plural(box.objects, "object")}" if unit == :bytes && box.objects
          "#{short_name(box.name)}\n#{weight}, #{share}#{objects}"
        end

        def change_of(box, unit)
          sign = "+" if box.after > box.before
          sign = "-" if box.after < box.before
          weights = [(box.after - box.before).abs, box.before, box.after].map { |one| weight_of(one, unit) }
          "#{sign}#{weights[0]}: #{weights[1]} → #{weights[2]}"
        end

        def weight_of(value, unit) = unit == :bytes ? Units.bytes(value) : Units.objects(value)

        # A label that fits if the picture is as wide as the widest page; labels.js fits it to other widths.
        def label_in(name, width)
          room = ((width - 8) / LETTER).floor
          cut = name.length > room
          text = cut ? "#{name[0, room - 1]}…" : name
          Html.tag(:text, text, x: 4, y: 13, data_name: (name[0, 400] if cut)) if room > 3 || !cut
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
