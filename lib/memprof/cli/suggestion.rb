# frozen_string_literal: true

require "shellwords"

module Memprof
  module CLI
    # Suggests the intended word for an unknown one, and what to run next.
    module Suggestion
      class << self
        # Such as ` (did you mean --limit?)`; an empty text if no word is close.
        def of(word, words)
          near = nearest(word, words)
          near ? " (did you mean #{near}?)" : ""
        end

        # A file's name, or another word of a command, as bash reads it: on one line, and without bytes that
        # are not text. Quotes look better than a backslash before every blank of a query.
        def word(text)
          text = String.new(text, encoding: Encoding::UTF_8)
          return "$'#{text.each_char.map { |character| escaped(character) }.join}'" unless printable?(text)

          text.match?(/[\s"]/) && !text.include?("'") ? "'#{text}'" : Shellwords.escape(text)
        end

        private

        def printable?(text) = Printable.line(text) == text

        def escaped(character)
          return "\\#{character}" if ["'", "\\"].include?(character)

          return character if printable?(character)

          character.unpack("C*").map { |byte| format("\\x%02x", byte) }.join
        end

        # Ruby may run without its spell checker (--disable-did_you_mean), which does not match short words
        # with the same letters.
        def nearest(word, words)
          checked = ::DidYouMean::SpellChecker.new(dictionary: words).correct(word) if
            defined?(::DidYouMean::SpellChecker)
          checked&.first || words.find { |one| one.chars.sort == word.chars.sort }
        end
      end
    end
  end
end
