# frozen_string_literal: true

require "memprof"
require_relative "bracket"
require_relative "byte_size"
require_relative "table"
require_relative "testing/limit"
require_relative "testing/class_filter"
require_relative "testing/measurement"
require_relative "testing/site_table"
require_relative "testing/budget"
require_relative "testing/leaks"
require_relative "testing/native_recording"
require_relative "testing/native_leaks"
require_relative "testing/native_allocations"

module Memprof
  # Shared by the RSpec matchers and the Minitest assertions: a Measurement runs a block, a Budget of Rules
  # judges it, a SiteTable lists where the objects were allocated.
  module Testing
    # Default number of runs of a block before the one that counts. The first run of almost any code allocates
    # objects that later ones don't (memoized values, autoloaded files, caches of regular expressions), so
    # without it a count would depend on the tests that happened to run before.
    WARMUP = 1

    def self.check_warmup(runs)
      return runs if runs.is_a?(Integer) && !runs.negative?

      raise ArgumentError, "warm-up must be an Integer of at least 0, not #{runs.inspect}"
    end
  end
end
