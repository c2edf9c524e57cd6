# frozen_string_literal: true

module Memprof
  module CLI
    # Suggests the intended word for an unknown one.
    module Suggestion
      class << self
        # Such as ` (did you mean --limit?)`; an empty text if no word is close.
        def of(word, words)
          near = nearest(word, words)
          near ? " (did you mean #{near}?)" : ""
        end

        private

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
