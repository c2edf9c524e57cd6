# frozen_string_literal: true

require_relative "cell"

module Memprof
  # Answers of a heap in words, for the command and the pages.
  #
  # @api private
  module Wording
    # What opening a heap is at.
    STAGES = {
      opening: "opening", reading: "reading", linking: "following references",
      computing: "computing retained sizes", writing: "writing the index"
    }.freeze

    class << self
      # Words in which places in files are apart, as text.
      def phrase(parts) = parts.map { |part| part.is_a?(Hash) ? Cell.place(part) : part }.join

      def holder(holder)
        return unless holder

        label = holder[:label].to_s
        label.match?(/\A[@\[]/) || label.empty? ? "#{holder[:class]}#{label}" : "#{holder[:class]} #{label}"
      end

      def growth(totals)
        change = totals[:change]
        "#{Cell.text(change[:size], :growth)} and #{Cell.text(change[:count], :more)} objects: " \
          "from #{sum(totals[:before])} to #{sum(totals[:after])}"
      end

      def sum(sum) = "#{Units.objects(sum[:count])} (#{Units.bytes(sum[:size])})"
    end
  end
end
