# frozen_string_literal: true

require_relative "../printable"
require_relative "address"
require_relative "wire"

module Memprof
  module Control
    # Sends requests to a process that has loaded `memprof/signal`.
    class Client
      # Maximum bytes of an answer. Only the sites of a large program need many.
      LIMIT = 1 << 20
      LIMITS = { "stats" => 64 << 20 }.freeze
      SECONDS = 30
      # Seconds between two attempts while too many other clients are waiting.
      GLANCE = 0.02
      # LOCAL_PEERPID of macOS, at level SOL_LOCAL.
      PEER_PID = [0, 2].freeze
      private_constant :LIMIT, :LIMITS, :SECONDS, :GLANCE, :PEER_PID

      class << self
        # A connection to the process `pid` of the user `uid` (nil if unknown). Nil if another process, or
        # none, listens there. The path may be that of a descriptor, /proc/self/fd/N.
        def connect(path, pid:, uid:)
          return unless File.stat(path).socket? && path.bytesize <= Address::LONGEST

          socket = dial(path) or return
          return new(socket) if peer?(socket, pid, uid)

          socket.close
          nil
        rescue SystemCallError
          socket&.close
          nil
        end

        private

        def dial(path)
          socket = Socket.new(:UNIX, :STREAM)
          deadline = Clock.now + SECONDS
          begin
            socket.connect_nonblock(Addrinfo.unix(path))
            return socket
          rescue IO::WaitWritable, Errno::EAGAIN
            sleep(GLANCE)
            retry if Clock.now < deadline
          end
          socket.close
          nil
        rescue SystemCallError
          socket&.close
          raise
        end

        # Checks the credentials that the kernel recorded at listen(2): the process may have been root then,
        # and dropped it since.
        def peer?(socket, pid, uid)
          if Socket.const_defined?(:SO_PEERCRED)
            peer, user = socket.getsockopt(:SOCKET, :PEERCRED).unpack("iI")
          else
            peer = peer_pid(socket) || pid
            user, = socket.getpeereid
          end
          peer == pid && (uid.nil? || [uid, 0].include?(user))
        end

        def peer_pid(socket)
          socket.getsockopt(*PEER_PID).int if RUBY_PLATFORM.include?("darwin")
        end
      end

      def initialize(socket)
        @socket = socket
        @ahead = String.new # a second answer may come with the first
        @limit = LIMIT
      end

      # Sends a request, with an optional descriptor: `pass` is an IO, which remains open here.
      def ask(request, pass: nil, seconds: SECONDS)
        @limit = LIMITS.fetch(request[:do], LIMIT)
        Wire.write(@socket, request, seconds: seconds, pass: pass)
        answer(seconds: seconds)
      end

      def answer(seconds: SECONDS)
        answer = Wire.read(@socket, seconds: seconds, limit: @limit, ahead: @ahead)
        raise Broken, "the process ended, or closed the connection" unless answer
        # The listener may have written anything, even terminal escape sequences.
        raise Broken, Printable.line(answer["error"]) unless answer["ok"]

        answer
      end

      def wait(seconds) = !@ahead.empty? || (@socket.wait_readable(seconds) ? true : false)

      def close = @socket.close
    end
  end
end
