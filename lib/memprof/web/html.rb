# frozen_string_literal: true

require "erb"
require_relative "../printable"

module Memprof
  class Web
    # Text that is already HTML. All other text is escaped wherever it is inserted into a page, and String's
    # own methods return plain strings, which are escaped again.
    class Html < String
      # Control and formatting characters other than line breaks and tabs.
      UNSAFE = /[\p{Cc}\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069&&[^\n\t]]/
      EMPTY_ELEMENTS = %i[br hr img input link meta].freeze
      ENTITIES = { "&amp;" => "&", "&lt;" => "<", "&gt;" => ">", "&quot;" => '"', "&#39;" => "'" }.freeze
      private_constant :UNSAFE, :EMPTY_ELEMENTS, :ENTITIES

      def initialize(text = "")
        super
        freeze
      end

      def to_s = self

      class << self
        # Escapes everything that is not Html.
        def escape(value)
          return value if value.is_a?(Html)

          text = Printable.utf8(value)
          text = text.gsub(UNSAFE) { |character| character.dump[1..-2] } if text.match?(UNSAFE)
          new(ERB::Util.html_escape(text))
        end

        # The text of HTML from here.
        def text(html) = String.new(html).gsub(/<[^>]*>/, "").gsub(/&(?:amp|lt|gt|quot|#39);/, ENTITIES)

        def join(parts, separator = "")
          new(parts.flatten.compact.map { |part| escape(part) }.join(escape(separator)))
        end

        # An element. Attributes that are nil or false are omitted; true means an attribute without a value.
        def tag(name, *content, **attributes)
          pairs = attributes.map { |key, value| attribute(key.to_s.tr("_", "-"), value) }
          return new("<#{name}#{pairs.join}>") if EMPTY_ELEMENTS.include?(name) && content.empty?

          new("<#{name}#{pairs.join}>#{join(content)}</#{name}>")
        end

        private

        def attribute(name, value)
          return "" if value.nil? || value == false
          return " #{name}" if value == true

          # Even HTML is escaped here: its quotes would end the attribute.
          %( #{name}="#{escape(String.new(value.to_s))}")
        end
      end
    end
  end
end
