# frozen_string_literal: true

require "shellwords"

module Memprof
  module CLI
    # What to do with a dump: said wherever one was made.
    module NextSteps
      def self.for(path)
        "memprof leaks #{Shellwords.escape(path)}"
      end
    end
  end
end
