# frozen_string_literal: true

require "io/wait"
require_relative "../after_fork"
require_relative "../clock"
require_relative "../native"
require_relative "../web"

module Memprof
  module Agent
    # Requests for what happens in the next seconds. As in Go, the answer is the difference of two profiles:
    # it has the intervals that end meanwhile.
    #
    # A request waits outside of the application where its server lets connections go (`rack.hijack`, as puma
    # and unicorn do): it takes no thread of the application. Elsewhere only a few may wait at once. The
    # number of waiting requests is bounded in any case.
    #
    # @api private
    class Deltas
      # Requests that may wait at once.
      MOST = 8
      # Seconds that a request may wait.
      LONGEST = 300
      # Seconds in which a client must have read the answer.
      PATIENCE = 10
      # Bytes that a client may send while it waits.
      CHATTER = 65_536
      GONE = [SystemCallError, IOError].freeze
      private_constant :PATIENCE, :CHATTER, :GONE

      # `threads` of the server may wait, where it does not let connections go.
      def initialize(totals, threads: 1, most: MOST)
        @totals = totals
        @threads = threads
        @most = most
        clear
        Deltas.instances << self
      end

      # The response of Rack to a request. `present` makes a Response of a profile.
      def answer(env, type, seconds, &present)
        hijack = env["rack.hijack"] if env["rack.hijack?"] != false && env["rack.hijack"].respond_to?(:call)
        return busy(seconds) unless enter(hijack ? :apart : :inside)
        return hand_over(env, hijack, type, seconds, present) if hijack

        begin
          earlier = @totals.profile
          pause(seconds)
          present.call(@totals.difference(type, earlier)).to_rack
        ensure
          leave(:inside)
        end
      end

      # Number of requests that wait.
      def size = @lock.synchronize { @waiting.values.sum }

      # Answers those that wait, without waiting any longer.
      def close
        Deltas.instances.delete(self)
        @lock.synchronize do
          @closed = true
          @ended.broadcast
        end
      end

      # The connections are the parent's, which answers.
      def after_fork
        @sockets.each_key { |socket| hang_up(socket) }
        clear
      end

      @instances = []

      class << self
        attr_reader :instances

        def after_fork = instances.each(&:after_fork)
      end

      AfterFork.register(self)

      private

      def clear
        @lock = Mutex.new
        @ended = ConditionVariable.new
        @closed = false
        @waiting = { apart: 0, inside: 0 }
        @sockets = {}
      end

      def enter(kind)
        @lock.synchronize do
          next false if @waiting[kind] >= (kind == :inside ? @threads : @most)

          @waiting[kind] += 1
          true
        end
      end

      def pause(seconds)
        last = Clock.now + seconds
        @lock.synchronize do
          until @closed || (left = last - Clock.now) <= 0
            @ended.wait(@lock, left)
          end
        end
      end

      def leave(kind) = @lock.synchronize { @waiting[kind] -= 1 }

      def busy(seconds)
        response = Web::Response.text(503, "too many requests for deltas are waiting\n")
        response.headers["retry-after"] = seconds.to_s
        response.to_rack
      end

      # The status is what servers ignore after the connection was taken over.
      def hand_over(env, hijack, type, seconds, present)
        earlier = @totals.profile
        socket = hijack.call
        socket = env["rack.hijack_io"] unless socket.respond_to?(:read_nonblock)
        @sockets[socket] = true
        thread = Thread.new { serve(socket, type, seconds, earlier, present) }
        thread.name = "memprof delta"
        thread.report_on_exception = false
        [-1, {}, []]
      rescue StandardError
        leave(:apart)
        raise
      end

      def serve(socket, type, seconds, earlier, present)
        return unless patient?(socket, seconds)

        response = Native.quiet { present.call(@totals.difference(type, earlier)) }
        write(socket, response)
      rescue *GONE
        nil # the client has gone
      ensure
        @sockets.delete(socket)
        hang_up(socket)
        leave(:apart)
      end

      # Waits; false as soon as the client has gone.
      def patient?(socket, seconds)
        last = Clock.now + seconds
        received = 0
        while (left = last - Clock.now).positive?
          next unless socket.wait_readable(left)

          read = socket.read_nonblock(4096, exception: false)
          return false if read.nil? || (read.is_a?(String) && (received += read.bytesize) > CHATTER)
        end
        true
      end

      def write(socket, response)
        body = response.body.join
        headers = response.headers.merge("content-length" => body.bytesize, "connection" => "close")
        head = headers.map { |name, value| "#{name}: #{value}\r\n" }.join
        reason = response.status == 200 ? "OK" : "Service Unavailable"
        rest = "HTTP/1.1 #{response.status} #{reason}\r\n#{head}\r\n".b << body.b
        last = Clock.now + PATIENCE
        until rest.empty?
          written = socket.write_nonblock(rest, exception: false)
          if written == :wait_writable
            left = last - Clock.now
            return unless left.positive? && socket.wait_writable(left)
          else
            rest = rest.byteslice(written..)
          end
        end
      end

      def hang_up(socket)
        socket.close
      rescue *GONE
        nil
      end
    end
  end
end
