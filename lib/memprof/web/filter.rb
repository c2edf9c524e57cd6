# frozen_string_literal: true

require_relative "../heap/verbs"

module Memprof
  class Web
    # Filters in the language of docs/query.md, for links.
    module Filter
      LONGEST_PATTERN = 4096
      private_constant :LONGEST_PATTERN

      module_function

      def quoted(text) = Heap::QueryText.quoted(text)

      def site(site)
        line = " and line = #{site[:line]}" if site[:line].to_i.positive?
        "file = #{quoted(site[:file])}#{line}"
      end

      def root(category) = "root = #{quoted(category)}"

      def contains(field, text)
        pattern = Regexp.escape(text).gsub("/", "\\/").gsub(/\p{Cc}/) { |char| format("\\x{%x}", char.ord) }
        # The language does not accept longer patterns.
        pattern.bytesize > LONGEST_PATTERN ? "#{field} ~ #{quoted(text)}" : "#{field} =~ /#{pattern}/i"
      end

      def namespace(name)
        "class = #{quoted(name)} or class =~ /\\A#{Regexp.escape(name).gsub("/", "\\/")}::/"
      end

      def all(*filters)
        filters = filters.compact
        return filters.first if filters.size < 2

        filters.map { |filter| filter.match?(/\bor\b|\|\|/i) ? "(#{filter})" : filter }.join(" and ")
      end
    end
  end
end
