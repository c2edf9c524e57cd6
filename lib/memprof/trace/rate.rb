# frozen_string_literal: true

require_relative "../clock"
require_relative "../lock"

module Memprof
  class Trace
    # Decides which requests are traced: one in so many, and at most so many a second.
    class Rate
      def initialize(one_in, per_second)
        @one_in = one_in unless one_in == 1
        @per_second = per_second
        @random = Random.new
        @lock = Lock.new
        @left = 0
      end

      # At random, not by counting: requests may follow a pattern.
      def allow?
        return false if @one_in && @random.rand(@one_in).positive?

        @per_second.nil? || @lock.synchronize { take }
      end

      private

      def take
        second = Clock.now.floor
        unless second == @second
          @second = second
          @left = @per_second
        end
        return false if @left.zero?

        @left -= 1
        true
      end
    end
  end
end
