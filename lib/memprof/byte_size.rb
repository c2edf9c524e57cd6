# frozen_string_literal: true

module Memprof
  # A size in human notation: a number of bytes, or "64 KiB", "1.5 MB", "20G".
  module ByteSize
    FORM = /\A\s*(?<number>\d[\d_]*(?:\.\d+)?)\s*(?:(?<prefix>[KMGT])(?<binary>i?))?B?\s*\z/i
    POWERS = { nil => 0, "K" => 1, "M" => 2, "G" => 3, "T" => 4 }.freeze
    private_constant :FORM, :POWERS

    def self.read(size)
      return size if size.is_a?(Integer) && !size.negative?

      form = FORM.match(size) if size.is_a?(String)
      raise ArgumentError, "#{size.inspect} is not a size: give bytes, or as \"64 KiB\"" unless form

      factor = (form[:binary].to_s.empty? ? 1000 : 1024)**POWERS[form[:prefix]&.upcase]
      (form[:number].delete("_").to_r * factor).to_i
    end
  end
end
