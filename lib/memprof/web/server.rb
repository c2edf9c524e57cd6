# frozen_string_literal: true

require_relative "../errors"

module Memprof
  class Web
    # Serves an application on a port of this machine: with puma if it is installed, else with webrick.
    #
    # @api private
    class Server
      ADVICE = "`memprof web` needs a web server: gem install puma (or webrick)"
      private_constant :ADVICE

      # @return [String] of the interface
      attr_reader :bind
      # @return [Integer] once it has started
      attr_reader :port

      # @param app [#call] a Rack application
      # @param bind [String] address of the interface
      # @param port [Integer] 0 for any that is free
      # @raise [Memprof::Error] if no web server is installed
      def initialize(app, bind: "127.0.0.1", port: 0)
        @bind = bind
        @port = port
        @engine = engine.new(app)
      end

      # Starts to answer, in threads of its own.
      #
      # @return [void]
      # @raise [Memprof::Error] if the port can't be had
      def start
        @port = @engine.start(@bind, @port)
      rescue SystemCallError, SocketError => e
        raise Error, "can't listen on #{@bind}:#{@port}: #{e.message}"
      end

      # @return [String] as "http://127.0.0.1:41234/"
      def url
        host = @bind.include?(":") ? "[#{@bind}]" : @bind
        host = "127.0.0.1" if ["0.0.0.0", "[::]"].include?(host)
        "http://#{host}:#{@port}/"
      end

      # Answers what has been asked, and ends.
      #
      # @return [void]
      def stop
        @engine.stop
      end

      private

      def engine
        require_relative "server/puma"
        Puma
      rescue LoadError
        begin
          require_relative "server/webrick"
          Webrick
        rescue LoadError
          raise Error, ADVICE
        end
      end
    end
  end
end
