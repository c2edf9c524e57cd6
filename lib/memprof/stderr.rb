# frozen_string_literal: true

require_relative "printable"

module Memprof
  # Messages of a process that memprof is loaded into. It uses the constant, as the program may have put
  # anything in the place of $stderr.
  module Stderr
    def self.warn(message)
      STDERR.write("memprof: #{Printable.line(message)}\n")
    rescue SystemCallError, IOError, ThreadError
      nil # closed; or, in a signal handler, just being written to
    end
  end
  private_constant :Stderr
end
