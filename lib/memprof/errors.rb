# frozen_string_literal: true

module Memprof
  # What memprof raises when it can't do what it was asked for. Wrong arguments raise ArgumentError, as in
  # Ruby itself.
  class Error < RuntimeError; end

  # Something was asked of a tracker that is not running.
  class NotRunning < Error; end

  # What was to be read is no heap dump, or so little of one is there that nothing is known about it. The
  # message says which file it is, what is wrong with it and where (line or byte), and what to do. A dump that
  # was cut later is no error: it is read up to there ({Heap#source} says so).
  #
  # @example
  #   File.write("notes.txt", "no dump at all")
  #   begin
  #     Memprof::Heap.open("notes.txt")
  #   rescue Memprof::InvalidDump => e
  #     puts e.message # can't read notes.txt: this is no heap dump; line 1: ...
  #   end
  class InvalidDump < Error; end

  # A heap dump, or one record of it, is larger than it may be: a few megabytes of compressed data can be
  # gigabytes. The message names the limit.
  class DumpTooLarge < Error; end

  # This Ruby, or this platform, does not allow it; the message says what would.
  class Unsupported < Error; end
end
