# frozen_string_literal: true

require "ipaddr"
require_relative "../after_fork"
require_relative "../errors"
require_relative "../web"
require_relative "../web/server"
require_relative "endpoints"

module Memprof
  module Agent
    # Serves Endpoints on a port of its own, for processes without a web server, when the setting `listen`
    # asks for it: on addresses of this machine, or with a token anywhere.
    #
    # @api private
    class Listener
      # Ports tried after the one that is asked for: each worker of a server needs one.
      PORTS = 64
      THREADS = 4
      TOKEN = "MEMPROF_AGENT_TOKEN"
      ADDRESS = /\A(?:\[(?<six>[\h:.]+)\]|(?<four>[\d.]+)|(?<name>localhost)):(?<port>\d{1,5})\z/
      private_constant :PORTS, :THREADS, :TOKEN, :ADDRESS

      # Admits requests that name this machine. A page of another site could have its name resolve to it.
      class Local
        def initialize
          @security = Web::Security.new(Web::Security::Hosts.new)
        end

        def answer(request) = @security.refusal(request)
      end
      private_constant :Local

      # Address and port of "127.0.0.1:9394" or "[::1]:9394". Raises ArgumentError.
      def self.address(text)
        match = ADDRESS.match(text.to_s)
        port = match && match[:port].to_i
        raise ArgumentError, address_wanted(text) unless port&.between?(0, 65_535)

        bind = match[:name] ? "127.0.0.1" : match[:six] || match[:four]
        IPAddr.new(bind)
        [bind, port]
      rescue IPAddr::Error
        raise ArgumentError, address_wanted(text)
      end

      def self.address_wanted(text)
        "listen must be an address and a port such as 127.0.0.1:9394 (got #{Printable.line(text.inspect)})"
      end
      private_class_method :address_wanted

      attr_reader :port

      # Raises ArgumentError for an address of other machines without a token.
      def initialize(address, token: ENV[TOKEN], app: nil)
        @bind, @first = Listener.address(address)
        token = nil if token.to_s.empty?
        unless token.nil? || Web::Gate::Mounted.strong?(token)
          raise ArgumentError, "invalid #{TOKEN}; expected at least 8 characters"
        end
        if token.nil? && !IPAddr.new(@bind).loopback?
          raise ArgumentError, "listen on #{@bind} requires a token (#{TOKEN}); without one, expected an " \
                               "address of this machine, such as 127.0.0.1"
        end

        gate = token ? Web::Gate::Token.new(token, hidden: true) : Local.new
        @app = app || Endpoints.new(gate: gate, threads: THREADS / 2)
      end

      # Listens on the first free port; raises Error if there is none.
      def start
        last = @first.zero? ? 0 : [@first + PORTS, 65_535].min
        (@first..last).each do |port|
          return self if listen(port)
        end
        raise Error, "cannot listen on #{@bind}: the ports #{@first} to #{last} are in use"
      end

      def url = @server&.url

      # Answers pending requests, and ends.
      def stop
        @app.close if @app.respond_to?(:close)
        @server&.stop
        @server = nil
      end

      # In a forked child: the port is the parent's.
      def after_fork
        @server&.abandon
        @server = nil
      end

      private

      def listen(port)
        server = Web::Server.new(@app, bind: @bind, port: port, threads: THREADS)
        server.start
        @port = server.port
        @server = server
      rescue Error => e
        raise unless e.cause.is_a?(Errno::EADDRINUSE) && !@first.zero?

        nil
      end
    end
  end
end
