# frozen_string_literal: true

require "memprof"
require_relative "live/dumps"
require_relative "live/request_recorder"

module Memprof
  class Web
    # The process that the application runs in: its dumps and traced requests; its facts, tracked objects and
    # malloc are global to the process. Each worker of a server has its own; only dumps are visible to all.
    class Live
      attr_reader :dumps, :recorder

      def initialize(dumps: Dumps.new, recorder: RequestRecorder.shared)
        @dumps = dumps
        @recorder = recorder
      end
    end
  end
end
