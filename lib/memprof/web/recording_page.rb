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

      def range = part_of_time("the start")

      # What links to other pages of the same part have.
      def part = { from: text(:from), to: text(:to) }

      private

      def chosen = range || {}
    end
  end
end
