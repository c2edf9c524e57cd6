# frozen_string_literal: true

require_relative "client"

module Memprof
  module Tracers
    # `http`: requests of Net::HTTP, of some other gems, and of clients built on these, by host and port. The
    # time covers the whole request, including connecting, and reading the body if that happens inside. A
    # request made during another one, as in the block that takes its response, has its own time.
    class Http < Client
      # Set in the fiber: the innermost running request.
      INSIDE = :memprof_http_request
      # Raised if no server could be reached.
      UNREACHABLE = %w[
        Errno::ECONNREFUSED Errno::EHOSTUNREACH Errno::ENETUNREACH Errno::EADDRNOTAVAIL SocketError
      ].freeze
      # Maximum number of errors to check in a chain of causes.
      CAUSES = 5
      private_constant :INSIDE, :UNREACHABLE, :CAUSES

      # A running request.
      class Call
        attr_reader :host, :port, :outer

        # For a client that may have to connect first, or one that knows afterwards whether it could.
        def initialize(host, port, outer, client: nil, easy: nil)
          @host = host
          @port = port
          @outer = outer
          @client = client
          @easy = easy
          @connects = client ? !client.started? : false
          @inner = @inner_wait = 0.0
        end

        # A client that has to connect first calls itself once.
        def again?(client)
          again = @connects && @client.equal?(client)
          @connects = false if again
          again
        end

        # Whether a failed request was sent.
        def sent?(error)
          return !@connects if @client

          @easy ? ClientGems.sent?(@easy) : Http.reached?(error)
        end

        def of?(easy) = @easy.equal?(easy)

        def own(time, wait) = [[time - @inner, 0.0].max, [wait - @inner_wait, 0.0].max]

        def add(time, wait)
          @inner += time
          @inner_wait += wait
        end
      end

      class << self
        # Records a request of Net::HTTP.
        def requested(client)
          call = Native.quiet do
            Call.new(client.address, client.port, Thread.current[INSIDE], client: client)
          end
          run(call) { yield }
        end

        # Records a request of another client. The block returns the response or its code.
        def request(host, port, easy = nil)
          run(Native.quiet { Call.new(host, port, Thread.current[INSIDE], easy: easy) }) { yield }
        end

        # Records a finished request that its client has measured.
        def ended(host, port, code, seconds)
          record(running, Clock.now - seconds, Native.gvl_wait) do |http, time, wait|
            http.requested(host, port, code, time, wait)
          end
        end

        def quiet?(client) = running.empty? || Thread.current[INSIDE]&.again?(client)

        # Whether the innermost running request belongs to a client.
        def inside?(easy) = Thread.current[INSIDE]&.of?(easy)

        # Whether a server was reached: a failed connection does not count as a request.
        def reached?(error)
          CAUSES.times do
            return true if error.nil?
            return false if error.class.ancestors.any? { |one| UNREACHABLE.include?(one.name) }

            error = error.cause
          end
          true
        end

        private

        def run(call)
          subscribers = running
          began = Clock.now
          waited = Native.gvl_wait
          response = nil
          begin
            Thread.current[INSIDE] = call
            response = yield
          ensure
            Thread.current[INSIDE] = call.outer
            finish(call, response, subscribers, began, waited) if response || Native.quiet { call.sent?($!) }
          end
        end

        def finish(call, response, subscribers, began, waited)
          record(subscribers, began, waited) do |http, time, wait|
            http.requested(call.host, call.port, response, *call.own(time, wait))
          end
          wait = Native.gvl_wait - waited
          call.outer&.add(Clock.now - began - wait, wait)
        end
      end

      # Prepended to Net::HTTP.
      module Requests
        def request(*)
          Http.quiet?(self) ? super : Http.requested(self) { super }
        end
      end

      hook "Net::HTTP", Requests

      def initialize
        super
        @total = {}
        @hosts = {}
        @responses = {}
      end

      def requested(host, port, response, time, wait)
        count(@total, time, wait)
        count(numbers = @hosts[host.to_s] ||= {}, time, wait)
        ports = numbers["ports"] ||= {}
        ports[port.to_s] = ports.fetch(port.to_s, 0) + 1
        code = code(response)
        @responses[code] = @responses.fetch(code, 0) + 1
      end

      def report = @hosts.empty? ? {} : { **@total, "hosts" => @hosts, "responses" => @responses }

      private

      def code(response)
        response = response.code if response.respond_to?(:code)
        response = response.status if response.respond_to?(:status)
        response.to_s.match?(/\A[1-9]\d*\z/) ? response.to_s : "error"
      end
    end
  end
end

require_relative "http/client_gems"
