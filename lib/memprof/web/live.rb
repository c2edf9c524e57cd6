# frozen_string_literal: true

require "memprof"
require_relative "live/dumps"
require_relative "live/facts"
require_relative "live/recorder"
require_relative "live/tracking"

module Memprof
  class Web
    # The process that the application runs in: what it is, which of its objects are tracked, its dumps, and
    # the requests that are traced. Each worker of a server is one of its own; only dumps are seen by all.
    #
    # @api private
    class Live
      # @return [Dumps]
      attr_reader :dumps
      # @return [Tracking]
      attr_reader :tracking
      # @return [Recorder]
      attr_reader :recorder

      # @param dumps [Dumps]
      # @param recorder [Recorder]
      def initialize(dumps: Dumps.new, recorder: Recorder.shared)
        @dumps = dumps
        @tracking = Tracking.new
        @recorder = recorder
      end

      # @param types [Boolean] also objects by type, for which all of the heap is walked
      # @return [Hash{Symbol => Object}]
      def facts(types: false)
        Facts.of_process(types: types)
      end

      # @param number [Integer]
      # @return [Dumps::Dump, nil]
      def find(number)
        @dumps.find(number)
      end
    end
  end
end
