# frozen_string_literal: true

require_relative "assets"

module Memprof
  class Web
    # A picture of a page as an SVG file of its own: without links, with the colors of the light scheme, in
    # CSS that viewers other than browsers read, too.
    class Picture
      SHEETS = %w[style.css flame.css graph.css records.css diff.css].freeze
      # What the sheets say about pictures. Selectors for pointers, and everything else, are left out.
      SELECTOR = /\A(?:svg text|\.(?:chart|treemap|icicle|graph|timeline|h\d)\b[^:]*)\z/
      PROPERTIES = %w[fill stroke stroke-width font font-size opacity paint-order].freeze
      RULE = /([^{}]+)\{([^{}]*)\}/
      SCHEME = /@media[^{]*\{(?:[^{}]*\{[^{}]*\})*[^{}]*\}/m
      WIDTH = 1200
      private_constant :SHEETS, :SELECTOR, :PROPERTIES, :RULE, :SCHEME, :WIDTH

      class << self
        def style = @style ||= sheet.freeze

        private

        def sheet
          text = SHEETS.map { |name| Assets.text(name) }.join.gsub(%r{/\*.*?\*/}m, "").gsub(SCHEME, "")
          rules = text.scan(RULE).flat_map do |selectors, body|
            selectors.split(",").map { |selector| [selector.strip, declarations(body)] }
          end
          known = rules.select { |selector, _| selector == ":root" }.map(&:last).reduce({}, :merge)
          tints = rules.select { |_, pairs| pairs.key?("--hue") }
          rules.select { |selector, _| SELECTOR.match?(selector) }
            .flat_map { |selector, pairs| rule(selector, pairs, known, tints) }.join("\n")
        end

        def declarations(body)
          body.split(";").filter_map { |pair| pair.split(":", 2).map(&:strip) if pair.include?(":") }.to_h
        end

        # Variables that depend on a class make a rule for each.
        def rule(selector, pairs, known, tints)
          pairs = pairs.slice(*PROPERTIES)
          return [] if pairs.empty?
          return [one(selector, pairs, known)] unless pairs.values.any? { |value| value.include?("--hue") }

          tints.map { |tint, hue| one(selector.sub(" ", " #{tint} "), pairs, known.merge(hue)) }
        end

        def one(selector, pairs, known)
          values = pairs.flat_map { |name, value| property(name, resolved(value, known)) }
          "#{selector} { #{values.join("; ")} }"
        end

        def property(name, value)
          return ["#{name}: #{value}"] unless name == "font"

          weight, size, family = value.match(/\A(?:(\d+) )?([\d.]+px)(?:\S*) (.+)\z/m).captures
          [("font-weight: #{weight}" if weight), "font-size: #{size}", "font-family: #{family}"].compact
        end

        def resolved(value, known)
          while (name = value[/var\((--[\w-]+)\)/, 1])
            value = value.gsub("var(#{name})", known.fetch(name, "none"))
          end
          value.gsub(/hsl\(([\d.]+) ([\d.]+)% ([\d.]+)%\)/) { rgb($1.to_f, $2.to_f / 100, $3.to_f / 100) }
        end

        # Many viewers do not know hsl().
        def rgb(hue, saturation, lightness)
          amount = saturation * [lightness, 1 - lightness].min
          parts = [0, 8, 4].map do |offset|
            step = (offset + hue / 30) % 12
            ((lightness - amount * [[step - 3, 9 - step, 1].min, -1].max) * 255).round
          end
          format("#%02x%02x%02x", *parts)
        end
      end

      def initialize(html)
        @html = html
      end

      def to_svg
        %(<?xml version="1.0" encoding="UTF-8"?>\n) + plain.sub(/\A<svg([^>]*)>/) { root($1) } << "\n"
      end

      # Without links: they lead to a server.
      def plain
        String.new(@html).gsub(/<a\b([^>]*)>/) { "<g#{$1[/ class="[^"]*"/]}>" }.gsub("</a>", "</g>")
          .gsub(/ data-name="[^"]*"/, "")
      end

      private

      def root(attributes)
        attributes = attributes.gsub(/ (?:data-[\w-]+|width|preserveAspectRatio)="[^"]*"/, "")
        width, height = attributes[/ viewBox="0 0 ([^"]*)"/, 1]&.split
        size = %( width="#{width || WIDTH}")
        size << %( height="#{height}") unless attributes.include?(" height=")
        "<svg xmlns=\"http://www.w3.org/2000/svg\"#{size}#{attributes}>\n<style>\n#{Picture.style}\n</style>\n"
      end
    end
  end
end
