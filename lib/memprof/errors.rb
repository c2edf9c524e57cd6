# frozen_string_literal: true

module Memprof
  # Raised when memprof can't do what it was asked for. Wrong arguments raise ArgumentError, as in Ruby
  # itself.
  class Error < RuntimeError; end

  # A tracker was used that is not running.
  class NotRunning < Error; end

  # The file is not a heap dump, or too little of one to be useful. The message says which file it is, what is
  # wrong with it and where (line or byte), and what to do. A dump truncated later does not raise: it is read
  # up to there ({Heap#source} says so).
  #
  # @example
  #   File.write("notes.txt", "no dump at all")
  #   begin
  #     Memprof::Heap.open("notes.txt")
  #   rescue Memprof::InvalidDump => e
  #     puts e.message # can't read notes.txt: this is not a heap dump; line 1: ...
  #   end
  class InvalidDump < Error; end

  # A heap dump, or one record of it, exceeds its size limit: a few megabytes of compressed data can be
  # gigabytes. The message states the limit.
  class DumpTooLarge < Error; end

  # Not supported on this Ruby or platform; the message says what is.
  class Unsupported < Error; end
end
