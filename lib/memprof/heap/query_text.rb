# frozen_string_literal: true

module Memprof
  class Heap
    # Texts in the syntax of the query language (docs/query.md).
    module QueryText
      ESCAPES = { "\\" => "\\\\", '"' => '\\"', "\n" => '\\n', "\r" => '\\r', "\t" => '\\t' }.freeze
      private_constant :ESCAPES

      def self.quoted(text)
        %("#{text.gsub(/[\\"\p{Cc}]/) { |char| ESCAPES.fetch(char) { format("\\u{%x}", char.ord) } }}")
      end
    end
  end
end
