# frozen_string_literal: true

require_relative "address"
require_relative "requests"

module Memprof
  module Control
    # Listens in the process that is looked at: to its own user and to root, one request at a time.
    class Server
      LIMIT = 64 * 1024
      SECONDS = 5
      GLANCE = 0.1
      private_constant :LIMIT, :SECONDS, :GLANCE

      attr_reader :socket

      def self.open(directory, dumper, sweep: false)
        path = Address.path(directory, Process.pid)
        Address.sweep(directory) if sweep
        new(Address.listen(path), path, Requests.new(dumper))
      rescue Error => e
        unless @warned # once, not in every child
          @warned = true
          OnSignal.warn_user("process #{Process.pid} answers to its signal only: #{e.message}")
        end
        nil
      end

      def initialize(socket, path, requests)
        @socket = socket
        @path = path
        @requests = requests
        @pid = Process.pid
      end

      def serve
        Native.quiet do
          client, = @socket.accept_nonblock(exception: false)
          answer(client) unless client == :wait_readable
        end
      rescue SystemCallError
        # The client went away; or no descriptor is left, and it will still be waiting: give way meanwhile.
        sleep(GLANCE)
      end

      def close
        File.unlink(@path)
        @socket.close
      rescue SystemCallError
        nil # removed already
      end

      # In a forked child: the socket is its parent's.
      def abandon = @socket.close

      private

      def answer(client)
        kept = false
        return reject(client) unless allowed?(client)

        # One request, one line: what is after it is taken for nothing.
        request = Wire.read(client, seconds: SECONDS, limit: LIMIT)
        kept = @requests.handle(request, client) if request
      rescue StandardError => e
        refuse(client, e)
      ensure
        client.close unless kept
      end

      # What it has said is taken first: a connection that is closed with something unread is torn down, and
      # the answer with it.
      def reject(client)
        client.read_nonblock(LIMIT, exception: false) if client.wait_readable(GLANCE)
        @requests.refuse(client, "this is not your process")
      end

      def allowed?(client)
        uid, = client.getpeereid
        [0, Process.euid].include?(uid)
      end

      def refuse(client, error)
        @requests.refuse(client, error.message.lines.first.to_s.chomp)
      rescue Broken
        nil # the client is gone
      end
    end
  end
end
