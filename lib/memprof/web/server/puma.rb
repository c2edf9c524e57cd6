# frozen_string_literal: true

require "puma"
require "puma/server"

module Memprof
  class Web
    class Server
      # Puma 5 and newer.
      #
      # @api private
      class Puma
        # @param app [#call]
        def initialize(app)
          # Requests are nobody's news, but mistakes of memprof are.
          null = ::Puma::NullIO.new
          @server =
            if defined?(::Puma::LogWriter)
              ::Puma::Server.new(app, nil, { log_writer: ::Puma::LogWriter.new(null, $stderr) })
            else
              ::Puma::Server.new(app, ::Puma::Events.new(null, $stderr))
            end
        end

        # @param bind [String]
        # @param port [Integer]
        # @return [Integer] the port
        def start(bind, port)
          @server.add_tcp_listener(bind, port)
          @server.run
          @server.connected_ports.first
        end

        # @return [void]
        def stop
          @server.stop(true)
        end
      end
    end
  end
end
