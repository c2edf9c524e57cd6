# frozen_string_literal: true

require_relative "paths"
require_relative "printable"
require_relative "screen_width"
require_relative "sparkline"
require_relative "units"

module Memprof
  # Formats values of an answer for people, in the command and on pages: sizes, counts, shares, names, places.
  module Cell
    NUMBERS = %i[bytes count percent growth more number seconds].freeze
    STYLES = { address: :dim, place: :dim, label: :cyan }.freeze
    LINE = /\A.*:\d+(?= in )/
    private_constant :NUMBERS, :STYLES, :LINE

    class << self
      def text(value, kind)
        return "" if value.nil?

        case kind
        when :bytes then Units.bytes(value)
        when :count then Units.count(value)
        when :percent then Units.percentage(value)
        when :seconds then Units.short_seconds(value)
        when :growth then signed(value) { |size| Units.bytes(size) }
        when :more then signed(value) { |count| Units.count(count) }
        when :place then place(value)
        when :series then Sparkline.of(value, unicode: Encoding.default_external == Encoding::UTF_8)
        else value.to_s
        end
      end

      def exact(value, kind)
        case kind
        when :place then value.nil? ? "" : place(value, full: true)
        when :series then value.to_a.join(" ")
        else value.nil? ? "" : value
        end
      end

      def number?(kind) = NUMBERS.include?(kind)

      def cut?(kind) = %i[name place].include?(kind)

      def style(kind) = STYLES[kind]

      # Truncates a text: a place loses its method first, as file and line identify it better, and is then cut
      # on the left; anything else is cut in the middle.
      def cut(text, width, kind)
        return Printable.fit(text, width) unless kind == :place

        text = text[LINE] || text
        return text if ScreenWidth.of(text) <= width

        tail = ScreenWidth.tail(text, width - 3)
        slash = tail.index("/")
        # At a directory, unless that loses too much.
        tail = tail[slash..] if slash && slash < width / 3
        "...#{tail}"
      end

      # A site as `file:line in method`.
      def place(site, full: false)
        return full ? site.to_s : Paths.short(Printable.utf8(site)) unless site.is_a?(Hash)

        file = site[:file].to_s
        file = Paths.short(Printable.utf8(file)) unless full
        line = ":#{site[:line]}" if site[:line].to_i.positive?
        method = " in #{site[:method]}" if site[:method]
        "#{file}#{line}#{method}"
      end

      private

      def signed(value)
        return "0" if value.zero?

        "#{value.positive? ? "+" : "-"}#{yield(value.abs)}"
      end
    end
  end
end
