# frozen_string_literal: true

module Memprof
  class Web
    module Helpers
      # Human-readable numbers, worded as in the command. The title has the exact one.
      module Numbers
        def bytes(value)
          return Html.new if value.nil?

          value.abs < 1024 ? Html.escape(Units.bytes(value)) : exact(Units.bytes(value), "#{count(value)} B")
        end

        def count(value) = value.nil? ? "" : Units.count(value)

        def percent(value) = Cell.text(value, :percent)

        def duration(seconds) = Units.short_seconds(seconds)

        # Only the agent measures the ages of objects.
        def age(seconds) = seconds ? duration(seconds) : "unknown"

        def plural(value, word) = Units.plural(value, word)

        # A share as a picture; the number is beside it.
        def bar(value)
          width = value.to_f.clamp(0, 100).round(2)
          Html.tag(:svg, Html.tag(:rect, width: width, height: 8), class: "bar", viewBox: "0 0 100 8",
            preserveAspectRatio: "none", aria_hidden: "true")
        end

        def time(microseconds) = microseconds && Time.at(microseconds / 1_000_000).utc.strftime("%F %T UTC")

        private

        def exact(text, exact) = Html.tag(:span, text, title: exact)
      end
    end
  end
end
