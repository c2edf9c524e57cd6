# frozen_string_literal: true

module Memprof
  # What memprof raises when it can't do what it was asked for. Wrong arguments raise ArgumentError, as in
  # Ruby itself.
  class Error < RuntimeError; end

  # Something was asked of a tracker that is not running.
  class NotRunning < Error; end

  # This Ruby, or this platform, does not allow it; the message says what would.
  class Unsupported < Error; end
end
