# frozen_string_literal: true

require "shellwords"

module Memprof
  module CLI
    # The command to run on a new dump.
    module NextSteps
      def self.for(path) = "memprof leaks #{Shellwords.escape(path)}"
    end
  end
end
