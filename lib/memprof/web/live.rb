# frozen_string_literal: true

require "memprof"
require_relative "live/dumps"
require_relative "live/malloc_recording"
require_relative "live/process_stats"
require_relative "live/request_recorder"
require_relative "live/tracking"

module Memprof
  class Web
    # The process that the application runs in: what it is, which of its objects are tracked, its memory,
    # its dumps, and the requests that are traced. Each worker of a server is one of its own; only dumps are
    # seen by all.
    class Live
      attr_reader :dumps, :tracking, :malloc, :recorder

      def initialize(dumps: Dumps.new, recorder: RequestRecorder.shared)
        @dumps = dumps
        @tracking = Tracking.new
        @malloc = MallocRecording.new
        @recorder = recorder
      end

      def facts(types: false) = ProcessStats.of_process(types: types)

      def find(number) = @dumps.find(number)
    end
  end
end
