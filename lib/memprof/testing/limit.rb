# frozen_string_literal: true

module Memprof
  module Testing
    # A limit of a test: a number is an upper limit, a range is a window.
    class Limit
      def initialize(value)
        unless usable?(value)
          raise ArgumentError, "#{value.inspect} is not a limit: give a whole number (the most) or a range"
        end

        @range = value.is_a?(Range) ? value : (0..value)
      end

      def allow?(actual) = @range.cover?(actual)

      def one?
        @range.end == 1 && !@range.exclude_end? && [nil, 0, 1].include?(@range.begin)
      end

      def to_s
        first = @range.begin
        last = @range.end
        return "at least #{first}" if last.nil?
        return "no" if last.zero? && !@range.exclude_end?
        return "#{@range.exclude_end? ? "fewer than" : "at most"} #{last}" if first.nil? || first.zero?
        return "exactly #{first}" if first == last && !@range.exclude_end?

        "#{first} to #{"below " if @range.exclude_end?}#{last}"
      end

      private

      def usable?(value)
        return whole?(value) unless value.is_a?(Range)

        ends = [value.begin, value.end].compact
        ends.any? && ends.all? { |number| whole?(number) || unlimited?(value, number) } && !empty?(value)
      end

      # True for 5, and for 5.0 from a computed limit.
      def whole?(number)
        number.is_a?(Numeric) && number.real? && number.finite? && number >= 0 && number == number.floor
      end

      def unlimited?(range, number) = number.equal?(range.end) && number == Float::INFINITY

      # Such a range contains no count, so no code could pass.
      def empty?(range)
        first = range.begin || 0
        !range.end.nil? && (range.exclude_end? ? first >= range.end : first > range.end)
      end
    end
  end
end
