# frozen_string_literal: true

require "io/wait"
require_relative "body"
require_relative "head"
require_relative "reply"

module Memprof
  class Web
    class Server
      # A connection with its one request. It waits for the head, a thread answers the request, and then it
      # waits for the client to close: if closed at once with data still arriving, the system would discard
      # the answer.
      class Connection
        LINGER = 5 # seconds to read what comes after the answer
        LEFT = 64 * 1024 * 1024 # maximum bytes to read then
        PIECE = 16_384
        GONE = [SystemCallError, IOError].freeze
        private_constant :LINGER, :LEFT, :PIECE, :GONE

        attr_reader :socket

        def initialize(socket, port, patience)
          @socket = socket
          @port = port
          @patience = patience
          @received = String.new(encoding: Encoding::BINARY)
          expect_until(patience)
        end

        # Reads available bytes, without waiting.
        def advance
          return drain if @answered

          read = @socket.read_nonblock(PIECE, exception: false)
          return :waiting if read == :wait_readable
          return close if read.nil?

          @received << read
          Head.complete?(@received) ? :complete : :waiting
        rescue *GONE
          close
        end

        # Has the application answer the request, and writes the response.
        def answer(app)
          head = Head.parse(@received)
          body = Body.new(@socket, head, @patience)
          status, headers, parts = called(app, head, body)
          Reply.new(@socket, head, @patience).write(status, headers, parts)
          finish(body)
        rescue Head::Invalid => e
          refuse(e)
        rescue *GONE
          close
        end

        def timed_out?(now) = now > @until

        def closed? = @socket.closed?

        def close
          @socket.close
          :closed
        rescue *GONE
          :closed
        end

        private

        # An error in the application ends its request, not a server thread.
        def called(app, head, body)
          app.call(environment(head, body))
        rescue *GONE
          raise
        rescue StandardError, ScriptError => e
          warn("memprof: #{e.class}: #{e.message}")
          raise Head::Invalid.new(500, "the application failed")
        end

        def environment(head, body)
          head.environment.merge(
            "SERVER_PORT" => @port.to_s, "REMOTE_ADDR" => @socket.remote_address.ip_address,
            "rack.input" => body, "rack.errors" => $stderr
          )
        end

        def refuse(error)
          Reply.new(@socket, nil, @patience)
            .write(error.status, { "content-type" => "text/plain" }, ["#{error.message}\n"])
          linger
        rescue *GONE
          close
        end

        def finish(body) = body.complete? ? close : linger

        def linger
          @socket.close_write
          @answered = true
          @left = LEFT
          expect_until(LINGER)
        end

        # Discards data that comes after the answer.
        def drain
          read = @socket.read_nonblock(PIECE, exception: false)
          return :waiting if read == :wait_readable
          return close if read.nil? || (@left -= read.bytesize).negative?

          :waiting
        rescue *GONE
          close
        end

        def expect_until(seconds)
          @until = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
        end
      end
    end
  end
end
