# frozen_string_literal: true

require_relative "../printable"

module Memprof
  class Trace
    # The counts of the extension, combined with the reports of tracers in Ruby. They are combined on demand.
    class Combined
      # A tracer's report as valid JSON values, whatever the program's names and numbers are.
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

      def initialize(counted, clients, own)
        @counted = counted
        @clients = clients
        @own = own
      end

      def to_h
        report = @counted.to_h
        @clients.each { |name, numbers| report[name] = add(report[name], numbers) }
        report.merge!(@own)
      end

      # Called by JSON.generate.
      def to_json(*state) = to_h.to_json(*state)

      private

      # Adds up the counts of two tracers of the same name.
      def add(one, other)
        one.merge(other) do |_, left, right|
          left.is_a?(Hash) && right.is_a?(Hash) ? add(left, right) : left + right
        end
      end
    end
  end
end
