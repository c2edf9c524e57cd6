# frozen_string_literal: true

require_relative "../printable"
require_relative "address"
require_relative "wire"

module Memprof
  module Control
    # Asks a process that has loaded `memprof/signal`.
    class Client
      # Of an answer: the sites of a large program are many.
      LIMIT = 1 << 30
      SECONDS = 30
      private_constant :LIMIT, :SECONDS

      def self.connect(path, uid: nil)
        return unless File.lstat(path).socket? && path.bytesize <= Address::LONGEST

        socket = Socket.unix(path)
        return new(socket) if uid.nil? || [uid, 0].include?(socket.getpeereid.first)

        socket.close
        nil
      rescue SystemCallError
        nil
      end

      def initialize(socket)
        @socket = socket
        @ahead = String.new # a second answer may come with the first
      end

      def ask(request, seconds: SECONDS)
        Wire.write(@socket, request, seconds: seconds)
        answer(seconds: seconds)
      end

      def answer(seconds: SECONDS)
        answer = Wire.read(@socket, seconds: seconds, limit: LIMIT, ahead: @ahead)
        raise Broken, "the process ended, or broke off" unless answer
        # Whoever listens there may have written anything, for a terminal to act on.
        raise Broken, Printable.line(answer["error"]) unless answer["ok"]

        answer
      end

      def wait(seconds) = !@ahead.empty? || (@socket.wait_readable(seconds) ? true : false)

      def close = @socket.close
    end
  end
end
