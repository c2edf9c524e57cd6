# frozen_string_literal: true

require_relative "address"
require_relative "requests"

module Memprof
  module Control
    # Listens in the inspected process: to its own user and to root, one request at a time.
    class Server
      LIMIT = 64 * 1024
      SECONDS = 5
      GLANCE = 0.1
      # The user id map outside of user namespaces: each id maps to itself.
      ALL_USERS = [0, 0, (1 << 32) - 1].freeze
      OVERFLOW_UID = 65_534
      private_constant :LIMIT, :SECONDS, :GLANCE, :ALL_USERS, :OVERFLOW_UID

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

      # The sockets to wait for.
      def sockets = [@socket, *@requests.leases.connections]

      def serve(ready)
        Native.quiet do
          # A lease has nothing more to send: it has ended, or must end.
          ended = ready & @requests.leases.connections
          @requests.leases.close(ended) unless ended.empty?
          accept if ready.include?(@socket)
        end
      rescue SystemCallError
        # The client went away; or no descriptor is left, and it will still be waiting: yield meanwhile.
        sleep(GLANCE)
      end

      def close
        @requests.leases.close
        File.unlink(@path)
        @socket.close
      rescue SystemCallError
        nil # removed already
      end

      # In a forked child: the socket and all connections are the parent's.
      def abandon
        @requests.leases.close
        [@socket, *@serving&.flatten].each(&:close)
      end

      private

      def accept
        client, = @socket.accept_nonblock(exception: false)
        answer(client) unless client == :wait_readable
      end

      def answer(client)
        kept = false
        passed = []
        @serving = [client, passed]
        return reject(client) unless allowed?(client)

        # One request, one line: the rest is ignored.
        request = Wire.read(client, seconds: SECONDS, limit: LIMIT, passed: passed)
        kept = @requests.handle(request, client, passed) if request
      rescue StandardError => e
        refuse(client, e)
      ensure
        @serving = nil
        passed.each(&:close)
        client.close unless kept
      end

      # Reads its request first: closing a connection with unread data resets it, and the answer is lost.
      def reject(client)
        client.read_nonblock(LIMIT, exception: false) if client.wait_readable(GLANCE)
        @requests.refuse(client, "this is not your process")
      end

      def allowed?(client)
        uid, = client.getpeereid
        uid.zero? || (uid == Process.euid && !anyone?(uid))
      end

      # Whether a user id may belong to any user: a user namespace shows all unmapped ids as the same one.
      def anyone?(uid)
        return false unless uid == File.read("/proc/sys/kernel/overflowuid").to_i

        File.read("/proc/self/uid_map").split.map(&:to_i) != ALL_USERS
      rescue SystemCallError
        RUBY_PLATFORM.include?("linux") && uid == OVERFLOW_UID
      end

      def refuse(client, error)
        @requests.refuse(client, error.message.lines.first.to_s.chomp)
      rescue Broken
        nil # the client is gone
      end
    end
  end
end
