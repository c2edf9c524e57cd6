# frozen_string_literal: true

require_relative "../printable"

module Memprof
  class Trace
    # Reports as trees of numbers: a Hash of numbers and of such Hashes.
    module Numbers
      # What JSON can say, whatever a program's names and numbers are.
      def self.plain(value)
        case value
        when Hash then value.to_h { |key, inner| [Printable.utf8(key), plain(inner)] }
        when Array then value.map { |inner| plain(inner) }
        when Integer, nil, true, false then value
        when Float then value.round(9) if value.finite?
        when Numeric then plain(value.to_f)
        else Printable.utf8(value)
        end
      end

      # Adds up what two tracers of one name counted.
      def self.merge(one, other)
        one.merge(other) do |_, left, right|
          left.is_a?(Hash) && right.is_a?(Hash) ? merge(left, right) : left + right
        end
      end
    end
  end
end
