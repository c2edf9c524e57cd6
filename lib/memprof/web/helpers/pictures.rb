# frozen_string_literal: true

require_relative "diff_bars"
require_relative "graphs"
require_relative "icicles"
require_relative "timelines"

module Memprof
  class Web
    module Helpers
      # What is drawn: each kind of picture in a file of its own.
      module Pictures
        include DiffBars
        include Graphs
        include Icicles
        include Timelines
      end
    end
  end
end
