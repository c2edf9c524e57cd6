# frozen_string_literal: true

require_relative "../units"

module Memprof
  module Malloc
    # What stands beside numbers that come from samples.
    module Estimates
      # @param sample [Integer, nil] bytes between samples
      # @return [String, nil] nil if all blocks were recorded: then numbers are exact
      # @api private
      def self.note(sample)
        "sampled every #{Units.bytes(sample)} on average: estimates" if sample
      end
    end
  end
end
