# frozen_string_literal: true

module Memprof
  class Core
    # Words of memory for display, little-endian as the machine reads them.
    module Words
      class << self
        # Two words per line, and their bytes as text; a word is nil if the file lacks it.
        def lines(address, words, text: true)
          start = Integer(address, 16)
          words.each_slice(2).with_index.map do |slice, row|
            digits = slice.map { |word| word ? word.delete_prefix("0x").rjust(16) : "?" * 16 }
            line = "#{(start + (row * 16)).to_s(16)}:  #{digits.join("  ").ljust(34)}"
            text ? "#{line}  #{text(slice)}" : line.rstrip
          end
        end

        # One character per byte.
        def text(words)
          bytes = words.map { |word| word ? [Integer(word, 16)].pack("Q<") : "?" * 8 }.join
          bytes.gsub(/[^ -~]/n, ".")
        end
      end
    end
  end
end
