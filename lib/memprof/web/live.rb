# frozen_string_literal: true

require "memprof"
require_relative "live/dumps"
require_relative "live/feed"
require_relative "live/request_recorder"
require_relative "live/sites"

module Memprof
  class Web
    # The process that the application runs in: its dumps and traced requests; its facts, tracked objects and
    # malloc are global to the process. Each worker of a server has its own; only dumps are visible to all.
    class Live
      # What the GC says of itself. Ruby versions differ in these; missing ones are nil.
      def self.gc(stat = GC.stat)
        {
          collections: stat[:count], minor: stat[:minor_gc_count], major: stat[:major_gc_count],
          seconds: stat[:time]&.fdiv(1000), live: stat[:heap_live_slots], free: stat[:heap_free_slots],
          pages: stat[:heap_allocated_pages], old: stat[:old_objects],
          allocated: stat[:total_allocated_objects], freed: stat[:total_freed_objects],
          malloc: stat[:malloc_increase_bytes]
        }
      end

      attr_reader :dumps, :recorder, :feed

      def initialize(dumps: Dumps.new, recorder: RequestRecorder.shared)
        @dumps = dumps
        @recorder = recorder
        @feed = Feed.new(dumps: dumps, recorder: recorder)
      end
    end
  end
end
