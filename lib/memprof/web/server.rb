# frozen_string_literal: true

require "socket"
require_relative "../errors"
require_relative "server/connection"

module Memprof
  class Web
    # Serves {Web} on a port of this machine: HTTP/1.1 with one request for each connection. It has of Rack
    # what that needs: bodies of requests can be read, and those of answers are Arrays.
    #
    # One thread waits for connections and for the heads of requests, however many and however slow they are.
    # A request whose head is there goes to a fixed number of threads. Its body is read when the application
    # reads it: of a request that is refused, nothing is kept.
    class Server
      THREADS = 16
      # Connections that have not sent a head yet. The oldest makes room for the next.
      WAITING = 400
      # Requests that no thread has begun with. While there are as many, no connection is accepted: the next
      # clients wait in the system's queue, and are answered in their turn.
      QUEUED = 400
      private_constant :THREADS, :WAITING, :QUEUED

      attr_reader :bind, :port

      def initialize(app, bind: "127.0.0.1", port: 0, patience: 10)
        @app = app
        @bind = bind
        @port = port
        @patience = patience
        @waiting = {}
        @requests = Queue.new
        @answered = Queue.new
      end

      # Starts to answer, in threads of its own.
      def start
        @listener = TCPServer.new(@bind, @port)
        @port = @listener.addr[1]
        @alarm, @wake = IO.pipe
        @threads = Array.new(THREADS) { Thread.new { work } }
        @acceptor = Thread.new { accept_and_wait }
      rescue SystemCallError, SocketError => e
        raise Error, "cannot listen on #{@bind}:#{@port}: #{e.message}"
      end

      def url
        host = @bind.include?(":") ? "[#{@bind}]" : @bind
        host = "127.0.0.1" if ["0.0.0.0", "[::]"].include?(host)
        "http://#{host}:#{@port}/"
      end

      # Answers what has been asked, and ends.
      def stop
        @stopping = true
        ring
        @acceptor.join
        THREADS.times { @requests << nil }
        @threads.each(&:join)
        @answered.pop.close until @answered.empty?
      end

      private

      def work
        while (connection = @requests.pop)
          connection.answer(@app)
          @answered << connection
          ring
        end
      end

      # The pipe is full only if the other end has enough to wake up for.
      def ring = @wake.write_nonblock(".", exception: false)

      def accept_and_wait
        until @stopping
          ready = IO.select([(@listener if room?), @alarm, *@waiting.keys].compact, nil, nil, 1)&.first || []
          @alarm.read_nonblock(256, exception: false) if ready.delete(@alarm)
          accept if ready.delete(@listener)
          ready.each { |socket| advance(@waiting[socket]) }
          wait_for(@answered.pop) until @answered.empty?
          drop_timed_out
        end
      ensure
        @listener.close
        @waiting.each_value(&:close)
      end

      def accept
        while room? && (socket = @listener.accept_nonblock(exception: false)) != :wait_readable
          drop_oldest if @waiting.size >= WAITING
          connection = Connection.new(socket, @port, @patience)
          wait_for(connection)
          advance(connection)
        end
      rescue Errno::EMFILE, Errno::ENFILE
        # There is no file left for the next connection.
        drop_oldest || sleep(0.05)
      rescue SystemCallError
        nil # who asked has gone
      end

      def wait_for(connection)
        connection.closed? ? nil : @waiting[connection.socket] = connection
      end

      def advance(connection)
        return if connection.nil? || connection.advance == :waiting

        @waiting.delete(connection.socket)
        @requests << connection unless connection.closed?
      end

      def room? = @requests.size < QUEUED

      def drop_oldest
        _, connection = @waiting.shift
        connection&.close
      end

      def drop_timed_out
        now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
        @waiting.delete_if { |_, connection| connection.timed_out?(now) && (connection.close || true) }
      end
    end
  end
end
