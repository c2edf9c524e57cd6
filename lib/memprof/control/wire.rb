# frozen_string_literal: true

require "io/wait"
require "json"
require "socket"
require_relative "../clock"
require_relative "../errors"

module Memprof
  # The protocol between a process that has loaded `memprof/signal` and the command: JSON objects, one per
  # line, over a Unix socket next to the dumps.
  module Control
    # The other side disconnected, timed out, or sent an invalid message.
    class Broken < Error; end

    # Lines over a socket, with timeouts. One descriptor may be passed with a line.
    module Wire
      CHUNK = 64 * 1024
      # Bytes for descriptors that arrive with a chunk. The kernel closes those that don't fit.
      ROOM = 64
      # A program may have SIGPIPE end it.
      FLAGS = Socket.const_defined?(:MSG_NOSIGNAL) ? Socket::MSG_NOSIGNAL : 0
      private_constant :CHUNK, :ROOM, :FLAGS

      class << self
        # Adds received descriptors to `passed`, as IOs, for the caller to close; without it, receives none.
        def read(io, seconds:, limit:, ahead: String.new, passed: nil)
          deadline = Clock.now + seconds
          looked = 0
          until (stop = ahead.index("\n", looked))
            looked = ahead.bytesize
            raise Broken, "a line is longer than #{limit} bytes" if looked > limit
            raise Broken, "no answer within #{seconds} s" unless io.wait_readable(left(deadline))

            chunk = passed ? take_passed(io, passed) : take(io)
            return if chunk.nil? && ahead.empty?
            raise Broken, "the connection was closed" if chunk.nil?

            ahead << chunk unless chunk == :wait_readable
          end
          parse(ahead.slice!(0..stop))
        end

        def write(io, object, seconds:, pass: nil)
          deadline = Clock.now + seconds
          rest = "#{JSON.generate(object)}\n".b
          rights = [Socket::AncillaryData.unix_rights(pass)] if pass
          until rest.empty?
            raise Broken, "the other end does not read" unless io.wait_writable(left(deadline))

            written = io.sendmsg_nonblock(rest, FLAGS, nil, *rights, exception: false)
            next if written == :wait_writable

            rest = rest.byteslice(written..)
            rights = nil # sent with the first bytes
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

        def take_passed(io, passed)
          chunk, _, flags, *controls = io.recvmsg_nonblock(CHUNK, 0, ROOM, scm_rights: true, exception: false)
          # Nil at EOF, since Ruby 3.3.
          return chunk if chunk.nil? || chunk == :wait_readable

          controls.each { |control| passed.concat(control.unix_rights) if control.cmsg_is?(:SOCKET, :RIGHTS) }
          if passed.size > 1 || flags.anybits?(Socket::MSG_CTRUNC)
            raise Broken, "more than one descriptor was passed, or none is left for it"
          end

          chunk unless chunk.to_s.empty?
        rescue SystemCallError, IOError => e
          raise Broken, e.message
        end

        def parse(line)
          object = JSON.parse(line.force_encoding(Encoding::UTF_8))
          raise Broken, "not a JSON object: #{line[0, 80].inspect}" unless object.is_a?(Hash)

          object
        rescue JSON::ParserError, EncodingError
          raise Broken, "not JSON: #{line[0, 80].inspect}"
        end
      end
    end
  end
end
