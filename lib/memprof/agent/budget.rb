# frozen_string_literal: true

module Memprof
  module Agent
    # Whether the agent costs more than it may, in several intervals in succession.
    class Budget
      INTERVALS = 3
      private_constant :INTERVALS

      def initialize(share)
        @share = share
        @shares = []
      end

      # Adds an interval.
      def exceeded?(interval)
        return false unless interval.duration.positive?

        @shares = [*@shares, interval.cost.fetch(:cpu) / interval.duration].last(INTERVALS)
        @shares.size == INTERVALS && @shares.all? { |share| share > @share }
      end

      def to_s
        percents = @shares.map { |share| format("%.1f %%", share * 100) }
        "#{percents.join(", ")} of a CPU in the last #{INTERVALS} intervals"
      end
    end
  end
end
