# frozen_string_literal: true

require_relative "../byte_size"
require_relative "comparison"
require_relative "wording"

module Memprof
  module Check
    # Limits for how much worse a program may become.
    class Limits
      # The outcome of a limit: the name of the case, its text, its measure, whether it failed.
      Outcome = Struct.new(:name, :text, :measure, :failed, keyword_init: true)

      PERCENT = /\A(\d+(?:\.\d+)?)\s*%?\z/
      private_constant :PERCENT

      # Percent, as "2%" or "0.5".
      def self.percent(text)
        text[PERCENT, 1]&.to_r || raise(ArgumentError, "#{text.inspect} is not a percentage")
      end

      # A number of objects, or with a unit a size: returns the measure and the number.
      def self.retained(text)
        return [:retained_objects, Integer(text, 10)] if text.match?(/\A\d+\z/)

        [:retained_bytes, ByteSize.read(text)]
      end

      def initialize(max_increase: nil, max_retained: nil)
        @max_increase = max_increase
        @max_retained = max_retained
      end

      # An outcome for each measure, and for the limit of retained objects or bytes.
      def judge(comparison)
        outcomes = Comparison::MEASURES.map { |measure| increase(measure, comparison.totals[measure]) }
        outcomes << retained(comparison.totals) if @max_retained
        outcomes
      end

      private

      def increase(measure, change)
        failed = !@max_increase.nil? && exceeds?(change)
        text = Wording.change(measure, change, failed ? digits(change) : 1)
        text += "; at most +#{Wording.percentage(@max_increase)} allowed" if failed
        Outcome.new(name: Wording.measure(measure), text: text, measure: measure, failed: failed)
      end

      def exceeds?(change)
        change[:change].positive? && change[:change] * 100 > change[:before] * @max_increase
      end

      # As many digits as needed to show that the limit is exceeded: +2.04 %, if that is 2 %.
      def digits(change)
        return 1 unless change[:before].positive?

        percent = change[:change] * 100r / change[:before]
        (1..6).find { |digits| percent.round(digits) > @max_increase } || 6
      end

      def retained(totals)
        measure, most = @max_retained
        actual = totals[measure][:after]
        failed = actual > most
        text = "#{Wording.amount(measure, actual)} retained; at most #{Wording.amount(measure, most)} allowed"
        Outcome.new(name: "retained", text: text, measure: measure, failed: failed)
      end
    end
  end
end
