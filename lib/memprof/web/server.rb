# frozen_string_literal: true

require "socket"
require_relative "../errors"
require_relative "server/connection"

module Memprof
  class Web
    # Serves {Web} on a port of this machine: HTTP/1.1 with one request per connection. Implements the part of
    # Rack that it needs: readable request bodies, and response bodies that are Arrays.
    #
    # One thread waits for connections and request heads, however many and however slow they are. Requests
    # with a complete head go to a fixed number of threads. A body is read when the application reads it:
    # nothing of a refused request is stored.
    class Server
      THREADS = 16
      # Maximum number of connections without a complete head. Beyond it, the oldest is dropped.
      WAITING = 400
      # Maximum number of queued requests. While it is reached, no connection is accepted: further clients
      # wait in the system's queue, and are served in turn.
      QUEUED = 400
      private_constant :THREADS, :WAITING, :QUEUED

      attr_reader :bind, :port

      def initialize(app, bind: "127.0.0.1", port: 0, patience: 10, threads: THREADS)
        @app = app
        @bind = bind
        @port = port
        @patience = patience
        @size = threads
        @waiting = {}
        @requests = Queue.new
        @answered = Queue.new
      end

      # Starts serving, in background threads.
      def start
        @listener = TCPServer.new(@bind, @port)
        @port = @listener.addr[1]
        @alarm, @wake = IO.pipe
        @threads = Array.new(@size) { Thread.new { work } }
        @acceptor = Thread.new { accept_and_wait }
      rescue SystemCallError, SocketError => e
        raise Error, "cannot listen on #{@bind}:#{@port}: #{e.message}"
      end

      def url
        host = @bind.include?(":") ? "[#{@bind}]" : @bind
        host = "127.0.0.1" if ["0.0.0.0", "[::]"].include?(host)
        "http://#{host}:#{@port}/"
      end

      # Answers pending requests, and ends.
      def stop
        @stopping = true
        ring
        @acceptor.join
        @size.times { @requests << nil }
        @threads.each(&:join)
        @answered.pop.close until @answered.empty?
      end

      # In the child of a fork: the threads are the parent's, and it answers.
      def abandon
        [@listener, @alarm, @wake, *@waiting.keys].each do |io|
          io.close
        rescue IOError, SystemCallError
          nil
        end
      end

      private

      def work
        while (connection = @requests.pop)
          connection.answer(@app)
          @answered << connection
          ring
        end
      end

      # If the pipe is full, the other end is awake anyway.
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
        # No descriptor is left for the next connection.
        drop_oldest || sleep(0.05)
      rescue SystemCallError
        nil # the client has gone
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
