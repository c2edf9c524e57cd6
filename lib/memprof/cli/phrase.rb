# frozen_string_literal: true

require_relative "cell"

module Memprof
  module CLI
    # Words of an answer, in which places in files are apart, as text.
    module Phrase
      def self.text(parts)
        parts.map { |part| part.is_a?(Hash) ? Cell.place(part) : part }.join
      end
    end
  end
end
