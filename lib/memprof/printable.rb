# frozen_string_literal: true

require_relative "screen_width"

module Memprof
  # Makes names from the measured program safe to print. Paths, class names and strings may contain anything:
  # bytes that are not text, line breaks that would tear a table, escape sequences that would act on the
  # terminal.
  module Printable
    # Control characters, line and paragraph separators, and marks that change the text direction.
    UNSAFE = /[\p{Cc}\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]/
    BYTE_ENCODINGS = [Encoding::UTF_8, Encoding::BINARY, Encoding::US_ASCII].freeze
    private_constant :UNSAFE, :BYTE_ENCODINGS

    # The text as valid UTF-8; invalid bytes become `\xNN`.
    def self.utf8(text)
      text = text.to_s
      return text if text.encoding == Encoding::UTF_8 && text.valid_encoding?

      decode(text).scrub { |bytes| bytes.unpack("C*").map { |byte| format("\\x%02X", byte) }.join }
    end

    # The text as valid UTF-8 on one line, without anything that acts on a terminal.
    def self.line(text) = utf8(text).gsub(UNSAFE) { |character| character.dump[1..-2] }

    # The text on one line, truncated in the middle to at most `width` columns: both ends of a class name
    # matter most.
    def self.fit(text, width)
      text = line(text)
      return text if ScreenWidth.of(text) <= width

      head = (width - 3) / 2
      "#{ScreenWidth.head(text, head)}...#{ScreenWidth.tail(text, width - 3 - head)}"
    end

    def self.decode(text)
      return text.dup.force_encoding(Encoding::UTF_8) if BYTE_ENCODINGS.include?(text.encoding)

      text.encode(Encoding::UTF_8)
    rescue EncodingError
      text.dup.force_encoding(Encoding::UTF_8)
    end
    private_class_method :decode
  end
end
