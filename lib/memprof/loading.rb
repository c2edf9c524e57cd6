# frozen_string_literal: true

require_relative "errors"
require_relative "native"

module Memprof
  # Files that are loaded when they are needed.
  #
  # A signal handler can't load any, as `require` takes a lock. So `require "memprof"` loads what a handler
  # may want; what `memprof run` loads into a program is less, and a thread loads the rest for a handler.
  module Loading
    # Seconds that a handler waits at most: where it came, the program may be loading a file itself.
    PATIENCE = 5
    private_constant :PATIENCE

    class << self
      def load(feature)
        Native.quiet { require feature }
      rescue ThreadError
        loader = Thread.new { Native.quiet { require feature } }
        loader.report_on_exception = false
        return if loader.join(PATIENCE)

        raise Error, "can't load #{feature} in this signal handler: the program is loading a file; " \
                     "do it in a thread (Thread.new { ... })"
      end

      # The gem json, which memprof does not load before the program is under way: under Bundler that would be
      # another one than its lockfile has. Another thread may be loading it: then this one waits.
      def json
        return if @json

        load("json")
        @json = true
      rescue LoadError
        # Loaded before, and the load path has changed since, or the root.
        raise unless defined?(JSON.generate)
      end
    end
  end
end
