# frozen_string_literal: true

require_relative "printable"

module Memprof
  # Messages of a process that loads memprof. Uses the constant, as the program may have reassigned $stderr.
  module Stderr
    def self.warn(message)
      STDERR.write("memprof: #{Printable.line(message)}\n")
    rescue SystemCallError, IOError, ThreadError
      nil # closed, or just being written to when a signal handler ran
    end
  end
  private_constant :Stderr
end
