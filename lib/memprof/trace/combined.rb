# frozen_string_literal: true

require_relative "numbers"

module Memprof
  class Trace
    # What the extension counted, together with what tracers in Ruby have to say. It is put together when
    # somebody asks.
    class Combined
      def initialize(counted, heard, own)
        @counted = counted
        @heard = heard
        @own = own
      end

      def to_h
        report = @counted.to_h
        @heard.each { |name, numbers| report[name] = Numbers.merge(report[name], numbers) }
        report.merge!(@own)
      end

      # What JSON.generate calls.
      def to_json(*state)
        to_h.to_json(*state)
      end
    end
  end
end
