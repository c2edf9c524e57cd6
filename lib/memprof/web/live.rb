# frozen_string_literal: true

require "memprof"
require_relative "live/dumps"
require_relative "live/request_recorder"

module Memprof
  class Web
    # The process that the application runs in: its dumps, and the requests that are traced; what it is, which
    # of its objects are tracked and what malloc allocated is the same for all. Each worker of a server is one
    # of its own; only dumps are seen by all.
    class Live
      attr_reader :dumps, :recorder

      def initialize(dumps: Dumps.new, recorder: RequestRecorder.shared)
        @dumps = dumps
        @recorder = recorder
      end
    end
  end
end
