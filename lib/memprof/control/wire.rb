# frozen_string_literal: true

require "io/wait"
require "json"
require_relative "../clock"
require_relative "../errors"

module Memprof
  # The conversation between a process that has loaded `memprof/signal` and the command: JSON objects, one on
  # a line, over a Unix socket beside the dumps.
  module Control
    # The other side broke off, took too long, or said what makes no sense.
    class Broken < Error; end

    # Lines over a socket, with an end to waiting.
    module Wire
      CHUNK = 64 * 1024
      private_constant :CHUNK

      class << self
        def read(io, seconds:, limit:, ahead: String.new)
          deadline = Clock.now + seconds
          looked = 0
          until (stop = ahead.index("\n", looked))
            looked = ahead.bytesize
            raise Broken, "a line is longer than #{limit} bytes" if looked > limit
            raise Broken, "no answer within #{seconds} s" unless io.wait_readable(left(deadline))

            chunk = take(io)
            return if chunk.nil? && ahead.empty?
            raise Broken, "the connection broke off" if chunk.nil?

            ahead << chunk unless chunk == :wait_readable
          end
          parse(ahead.slice!(0..stop))
        end

        def write(io, object, seconds:)
          deadline = Clock.now + seconds
          rest = "#{JSON.generate(object)}\n".b
          until rest.empty?
            raise Broken, "the other end reads nothing" unless io.wait_writable(left(deadline))

            written = io.write_nonblock(rest, exception: false)
            rest = rest.byteslice(written..) unless written == :wait_writable
          end
        rescue SystemCallError, IOError => e
          raise Broken, e.message
        end

        private

        def left(deadline) = [deadline - Clock.now, 0].max

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
      end
    end
  end
end
