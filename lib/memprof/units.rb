# frozen_string_literal: true

module Memprof
  # Formats numbers for people. JSON never uses this: it has exact numbers.
  module Units
    BINARY = %w[KiB MiB GiB TiB PiB EiB].freeze
    DECIMAL = %w[B kB MB GB TB PB EB ZB YB].freeze
    private_constant :BINARY, :DECIMAL

    # A size in binary units, as memprof prints sizes.
    def self.bytes(bytes)
      return "#{bytes} B" if bytes.abs < 1024

      value = bytes / 1024.0
      unit = BINARY.find { |name| value.abs < 1023.95 || name == BINARY.last || !(value /= 1024) }
      format("%.1f %s", value, unit)
    end

    # A size in decimal units, as memory_profiler scales bytes.
    def self.decimal_bytes(bytes)
      return "0 B" if bytes.zero?

      power = [(Math.log10(bytes) / 3).floor, DECIMAL.size - 1].min
      format("%.2f %s", bytes / (1000.0**power), DECIMAL[power])
    end

    # A number with thousands separators.
    def self.count(number) = number.to_s.gsub(/(\d)(?=(?:\d{3})+\z)/, "\\1,")

    # A count, which may be negative, with its noun.
    def self.plural(number, word)
      ending = word.match?(/(?:s|sh)\z/) ? "es" : "s"
      "#{count(number)} #{word}#{ending unless number.abs == 1}"
    end

    # A number of objects, and their bytes if they are given.
    def self.objects(number, bytes = nil) = "#{plural(number, "object")}#{" (#{bytes(bytes)})" if bytes}"

    # The note next to numbers that come from samples; nil if nothing was sampled.
    def self.sampled(bytes) = bytes && "sampled every #{bytes(bytes)} on average: estimates"

    # A percentage. A part that is neither nothing nor all never rounds to either.
    def self.percent(part, whole)
      return "-" unless whole.positive?
      return "0 %" if part.zero?

      share = part * 100.0 / whole
      share < 1 ? "<1 %" : "#{share < 100 ? [share.round, 99].min : share.round} %"
    end

    # A share that is known as a percentage, for columns of shares.
    def self.percentage(percent) = format("%.1f %%", percent)

    # A duration of a run.
    def self.seconds(seconds)
      return "#{(seconds * 1000).round} ms" if seconds < 0.9995
      return format("%.2f s", seconds) if seconds < 59.995

      minutes, rest = seconds.round.divmod(60)
      "#{count(minutes)} min #{rest} s"
    end

    # A short duration, as of requests and calls.
    def self.short_seconds(seconds)
      return "0" if seconds.zero?
      return format("%d us", [(seconds * 1e6).round, 1].max) if seconds < 0.0009995

      seconds < 0.09995 ? format("%.1f ms", seconds * 1000) : seconds(seconds)
    end
  end
end
