# frozen_string_literal: true

require "io/wait"
require "json"
require_relative "../errors"

module Memprof
  # The conversation between a process that has loaded `memprof/signal` and the command: JSON objects, one on
  # a line, over a Unix socket beside the dumps.
  #
  # @api private
  module Control
    # The other side broke off, took too long, or said what makes no sense.
    class Broken < Error; end

    # Lines over a socket, with an end to waiting.
    #
    # @api private
    module Wire
      CHUNK = 64 * 1024
      private_constant :CHUNK

      class << self
        # Reads one line.
        #
        # @param io [Socket]
        # @param seconds [Numeric] to wait at most
        # @param limit [Integer] bytes at most
        # @return [Hash, nil] nil if there is none any more
        # @raise [Broken]
        def read(io, seconds:, limit:)
          deadline = now + seconds
          line = +""
          until line.end_with?("\n")
            raise Broken, "a line is longer than #{limit} bytes" if line.bytesize > limit
            raise Broken, "no answer within #{seconds} s" unless io.wait_readable([deadline - now, 0].max)

            chunk = take(io)
            return if chunk.nil? && line.empty?
            raise Broken, "the connection broke off" if chunk.nil?

            line << chunk unless chunk == :wait_readable
          end
          parse(line)
        end

        # Writes one line.
        #
        # @param io [Socket]
        # @param object [Hash]
        # @param seconds [Numeric] to wait at most
        # @return [void]
        # @raise [Broken]
        def write(io, object, seconds:)
          deadline = now + seconds
          rest = "#{JSON.generate(object)}\n".b
          until rest.empty?
            raise Broken, "nobody reads" unless io.wait_writable([deadline - now, 0].max)

            written = io.write_nonblock(rest, exception: false)
            rest = rest.byteslice(written..) unless written == :wait_writable
          end
        rescue SystemCallError, IOError => e
          raise Broken, e.message
        end

        private

        # One request, one line: what is after it is taken for nothing.
        def take(io)
          io.read_nonblock(CHUNK, exception: false)
        rescue SystemCallError, IOError => e
          raise Broken, e.message
        end

        def parse(line)
          object = JSON.parse(line.force_encoding(Encoding::UTF_8))
          raise Broken, "no JSON object: #{line[0, 80].inspect}" unless object.is_a?(Hash)

          object
        rescue JSON::ParserError, EncodingError
          raise Broken, "no JSON: #{line[0, 80].inspect}"
        end

        def now
          Process.clock_gettime(Process::CLOCK_MONOTONIC)
        end
      end
    end
  end
end
