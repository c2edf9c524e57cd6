# frozen_string_literal: true

require_relative "html"

module Memprof
  class Web
    # A rendered page without what needs a server: links become text, forms and menus are left out.
    module Static
      LEFT_OUT = %r{<(form|nav|button)\b.*?</\1>|<(div|p)\ class="flame-(?:tools|detail|others)".*?</\2>}mx
      TAG = %r{<(/?)(svg|a|h1|h2)\b([^>]*)>}
      # Attributes of pages that scripts read or links lead to.
      UNUSED = / (?:data-[\w-]+|href|id|aria-current|aria-sort)="[^"]*"/
      # A heading of what was left out.
      EMPTY = %r{<section[^>]*>\s*<h3[^>]*>[^<]*</h3>\s*</section>}
      BELOW = { "h1" => "h2", "h2" => "h3" }.freeze
      private_constant :LEFT_OUT, :TAG, :UNUSED, :EMPTY, :BELOW

      # Texts have no < and no quotes: they are escaped.
      def self.of(html)
        pictures = 0
        text = String.new(html).gsub(LEFT_OUT, "").gsub(TAG) do
          closing = $1
          name = $2
          attributes = $3
          pictures += closing.empty? ? 1 : -1 if name == "svg"
          name = BELOW.fetch(name) { pictures.positive? ? "g" : "span" } unless name == "svg"
          "<#{closing}#{name}#{attributes}>"
        end
        Html.new(text.gsub(/<[^>]+>/) { |tag| tag.gsub(UNUSED, "") }.gsub(EMPTY, ""))
      end
    end
  end
end
