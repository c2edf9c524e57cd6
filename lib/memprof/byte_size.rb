# frozen_string_literal: true

module Memprof
  # A size as people write it: a number of bytes, or "64 KiB", "1.5 MB".
  module ByteSize
    UNITS = { "" => 1, "B" => 1, "KIB" => 1 << 10, "MIB" => 1 << 20, "GIB" => 1 << 30,
              "KB" => 1000, "MB" => 1_000_000, "GB" => 1_000_000_000 }.freeze
    FORM = /\A\s*(\d[\d_]*(?:\.\d+)?)\s*([a-z]*)\s*\z/i
    private_constant :UNITS, :FORM

    # The size in bytes.
    def self.read(size)
      return size if size.is_a?(Integer) && !size.negative?

      number, unit = size.is_a?(String) ? size.match(FORM)&.captures : nil
      factor = UNITS[unit&.upcase]
      raise ArgumentError, "#{size.inspect} is not a size: give bytes, or as \"64 KiB\"" unless factor

      (number.delete("_").to_r * factor).to_i
    end
  end
end
