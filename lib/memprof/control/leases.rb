# frozen_string_literal: true

require_relative "../session"

module Memprof
  module Control
    # Connections of commands that keep tracking on while they run: however a command ends, the kernel closes
    # its connection. Tracking ends with the last one, unless the program wants it, too.
    class Leases
      MOST = 16
      private_constant :MOST

      attr_reader :connections

      def initialize
        @connections = []
        @session = nil
      end

      # Returns whether tracking began, as Memprof.start does.
      def add(connection, **options)
        raise Error, "#{MOST} commands track in this process already" if @connections.size >= MOST

        session = Session.prepare(**options)
        session.leased = true
        # Assigned before it is open: a child that is forked now must know that it has inherited it.
        before = @session
        @session = session
        began = session.open_for(Memprof)
        @session = before unless began
        @connections += [connection]
        began
      end

      def close(connections = @connections)
        connections.each(&:close)
        @connections -= connections
        return unless @connections.empty?

        @session.close if @session&.leased
        @session = nil
      end
    end
  end
end
