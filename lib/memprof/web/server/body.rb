# frozen_string_literal: true

require "io/wait"

module Memprof
  class Web
    class Server
      # The body of a request, read from its connection as the application reads it: memory use is limited to
      # the requested amount, and nothing is stored on disk.
      class Body
        PIECE = 65_536
        LONGEST_LINE = 4096 # of a chunk size line, or a trailer
        TRAILERS = 64
        private_constant :PIECE, :LONGEST_LINE, :TRAILERS

        def initialize(socket, head, patience)
          @socket = socket
          @patience = patience
          @buffer = head.rest
          @continue = head.expects_continue?
          @chunked = head.chunked?
          # Remaining bytes of the body, or of the chunk.
          @left = @chunked ? 0 : head.length || 0
          @over = !@chunked && @left.zero?
        end

        def read(length = nil)
          taken = String.new(encoding: Encoding::BINARY)
          while (length.nil? || taken.bytesize < length) && (part = part(length && (length - taken.bytesize)))
            taken << part
          end
          taken unless taken.empty? && length&.positive?
        end

        def complete? = @over && @buffer.empty?

        private

        # The next piece of the body, or nil at its end.
        def part(most)
          next_chunk if @chunked && @left.zero? && !@over
          return if @over

          fill if @buffer.empty?
          taken = @buffer.slice!(0, [@left, most || PIECE, PIECE].min)
          @left -= taken.bytesize
          @chunked ? end_chunk : @over = @left.zero?
          taken
        end

        def next_chunk
          size = line[/\A\h{1,15}(?=\s*(?:;|\z))/] or raise IOError, "a chunk has no length"
          @left = size.hex
          return if @left.positive?

          TRAILERS.times { return @over = true if line.empty? }
          raise IOError, "the body ends with too many trailers"
        end

        def end_chunk
          raise IOError, "a chunk is longer than it says" if @left.zero? && !line.empty?
        end

        def line
          until (place = @buffer.index("\r\n"))
            raise IOError, "a line between chunks is too long" if @buffer.bytesize > LONGEST_LINE

            fill
          end
          @buffer.slice!(0, place + 2).chomp("\r\n")
        end

        def fill
          if @continue
            @continue = false
            @socket.write("HTTP/1.1 100 Continue\r\n\r\n")
          end
          while (read = @socket.read_nonblock(PIECE, exception: false)) == :wait_readable
            @socket.wait_readable(@patience) || raise(IOError, "no data for #{@patience} seconds")
          end
          raise EOFError, "the connection was closed" if read.nil?

          @buffer << read
        end
      end
    end
  end
end
