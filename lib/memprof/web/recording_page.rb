# frozen_string_literal: true

require_relative "record_page"

module Memprof
  class Web
    # A page about a recording of malloc. `value` says which bytes are meant, `from` and `to` choose a part of
    # the time, in seconds after the start.
    class RecordingPage < RecordPage
      VALUES = %w[peak leaked allocated].freeze
      # What they are called.
      WORDS = {
        "peak" => "live at the peak", "leaked" => "live at the end", "allocated" => "allocated"
      }.freeze

      def value = choice(:value, VALUES, "peak")

      def range
        from = seconds(:from)
        to = seconds(:to)
        return unless from || to
        raise BadRequest, "to must be at least from" if to && to < from.to_f

        { from: from || 0.0, to: to }
      end

      # What links to other pages of the same part have.
      def part = { from: text(:from), to: text(:to) }

      private

      def chosen = range || {}

      def seconds(name)
        value = text(name) or return
        number = Float(value, exception: false)
        return number if number&.between?(0, Float::MAX)

        raise BadRequest, "invalid #{name} #{value.inspect}; expected seconds after the start"
      end
    end
  end
end
