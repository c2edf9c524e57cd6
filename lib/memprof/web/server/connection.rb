# frozen_string_literal: true

require "io/wait"
require_relative "body"
require_relative "head"
require_relative "reply"

module Memprof
  class Web
    class Server
      # A connection with its one request. It waits for the head of the request, then a thread answers it, and
      # then it waits for the other end to close: what is still on its way would make the system throw the
      # answer away if it was closed at once.
      class Connection
        LINGER = 5 # seconds for which what comes after the answer is read
        LEFT = 64 * 1024 * 1024 # bytes of that
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

        # Reads what is there, without waiting.
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

        # Has the application answer the request, and writes what it says.
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

        # What goes wrong in an application ends its request, not a thread of the server.
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

        # Throws away what comes after the answer.
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
