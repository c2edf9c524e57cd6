# frozen_string_literal: true

module Memprof
  # The number of screen columns that a text takes. Chinese, Japanese and Korean characters and emoji take
  # two; combining characters take none. Without this, a class name or a string with such characters would
  # misalign the rest of its row.
  #
  # Terminals differ in the details. This follows the Unicode Standard Annex 11 (East Asian Width) as far as
  # they agree: `W` and `F` are wide, `A` (ambiguous) is not.
  module ScreenWidth
    # Blocks of wide characters, including unassigned ones, and the wide characters of other blocks that are
    # not emoji.
    WIDE = Regexp.new("[" \
      "\u{1100}-\u{115F}\u{2329}\u{232A}\u{2E80}-\u{303E}\u{3041}-\u{A4CF}\u{A960}-\u{A97F}" \
      "\u{AC00}-\u{D7A3}\u{F900}-\u{FAFF}\u{FE10}-\u{FE19}\u{FE30}-\u{FE6F}\u{FF01}-\u{FF60}" \
      "\u{FFE0}-\u{FFE6}\u{16FE0}-\u{18DFF}\u{1AFF0}-\u{1B2FF}\u{1F200}-\u{1F2FF}" \
      "\u{20000}-\u{2FFFD}\u{30000}-\u{3FFFD}\u{FE0F}]|\\p{Emoji_Presentation}").freeze
    # Marks and joiners, which appear alone only in broken text.
    NOTHING = /\A[\p{Mn}\p{Me}\u{200B}-\u{200D}\u{2060}\u{FEFF}]+\z/
    # The sound marks of halfwidth kana belong to the previous character, but have their own column.
    SOUND_MARKS = "\u{FF9E}\u{FF9F}"
    private_constant :WIDE, :NOTHING, :SOUND_MARKS

    class << self
      def of(text)
        text.ascii_only? ? text.length : text.each_grapheme_cluster.sum { |cluster| of_cluster(cluster) }
      end

      def head(text, columns)
        text.ascii_only? ? text[0, columns] : fitting(text.each_grapheme_cluster, columns).join
      end

      def tail(text, columns)
        return text[[text.length - columns, 0].max..] if text.ascii_only?

        fitting(text.grapheme_clusters.reverse, columns).reverse.join
      end

      def left(text, columns) = text + blanks(text, columns)

      def right(text, columns) = blanks(text, columns) + text

      def split(text, columns)
        lines = [+""]
        room = columns
        text.each_grapheme_cluster do |cluster|
          width = of_cluster(cluster)
          if width > room && !lines.last.empty?
            lines << +""
            room = columns
          end
          lines.last << cluster
          room -= width
        end
        lines
      end

      private

      def of_cluster(cluster)
        return 2 if WIDE.match?(cluster)

        NOTHING.match?(cluster) ? 0 : 1 + cluster[1..].count(SOUND_MARKS)
      end

      def fitting(clusters, columns) = clusters.take_while { |cluster| (columns -= of_cluster(cluster)) >= 0 }

      def blanks(text, columns) = " " * [columns - of(text), 0].max
    end
  end
end
