# frozen_string_literal: true

require_relative "cell"

module Memprof
  module CLI
    # Words of an answer, in which places in files are apart, as text.
    #
    # @api private
    module Phrase
      # @param parts [Array<String, Hash>] of an answer
      # @return [String] with paths as memprof's own tables have them
      def self.text(parts)
        parts.map { |part| part.is_a?(Hash) ? Cell.place(part) : part }.join
      end
    end
  end
end
