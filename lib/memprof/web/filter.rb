# frozen_string_literal: true

module Memprof
  class Web
    # Filters in the language of docs/query.md, for links.
    #
    # @api private
    module Filter
      ESCAPES = { "\\" => "\\\\", '"' => '\\"', "\n" => '\\n', "\r" => '\\r', "\t" => '\\t' }.freeze
      LONGEST_PATTERN = 4096
      private_constant :ESCAPES, :LONGEST_PATTERN

      module_function

      # @param text [String]
      # @return [String] as the language has texts
      def quoted(text)
        %("#{text.gsub(/[\\"\p{Cc}]/) { |char| ESCAPES.fetch(char) { format("\\u{%x}", char.ord) } }}")
      end

      # @param site [Hash] with `:file`, perhaps `:line`
      # @return [String]
      def site(site)
        line = " and line = #{site[:line]}" if site[:line].to_i.positive?
        "file = #{quoted(site[:file])}#{line}"
      end

      # @param category [String] of a dump: anything
      # @return [String] objects that these roots hold
      def root(category) = "root = #{quoted(category)}"

      # @param field [String] name of a field that is text
      # @param text [String]
      # @return [String] objects whose field contains the text, in upper or lower case
      def contains(field, text)
        pattern = Regexp.escape(text).gsub("/", "\\/").gsub(/\p{Cc}/) { |char| format("\\x{%x}", char.ord) }
        # Longer ones the language does not take.
        pattern.bytesize > LONGEST_PATTERN ? "#{field} ~ #{quoted(text)}" : "#{field} =~ /#{pattern}/i"
      end

      # @param name [String] of a class or module
      # @return [String] instances of the classes in it, itself included
      def namespace(name)
        "class = #{quoted(name)} or class =~ /\\A#{Regexp.escape(name).gsub("/", "\\/")}::/"
      end

      # @param filters [Array<String, nil>]
      # @return [String, nil] all of them
      def all(*filters)
        filters = filters.compact
        return filters.first if filters.size < 2

        filters.map { |filter| filter.match?(/\bor\b|\|\|/i) ? "(#{filter})" : filter }.join(" and ")
      end
    end
  end
end
