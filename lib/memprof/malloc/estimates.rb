# frozen_string_literal: true

require_relative "../units"

module Memprof
  module Malloc
    # The note next to numbers that come from samples.
    module Estimates
      # Nil if all blocks were recorded: then numbers are exact.
      def self.note(sample)
        "sampled every #{Units.bytes(sample)} on average: estimates" if sample
      end
    end
  end
end
