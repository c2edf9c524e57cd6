# frozen_string_literal: true

module Memprof
  class Heap
    # Texts as the query language has them (docs/query.md).
    module QueryText
      ESCAPES = { "\\" => "\\\\", '"' => '\\"', "\n" => '\\n', "\r" => '\\r', "\t" => '\\t' }.freeze
      private_constant :ESCAPES

      def self.quoted(text)
        %("#{text.gsub(/[\\"\p{Cc}]/) { |char| ESCAPES.fetch(char) { format("\\u{%x}", char.ord) } }}")
      end
    end
  end
end
