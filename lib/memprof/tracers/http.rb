# frozen_string_literal: true

require_relative "client"

module Memprof
  module Tracers
    # `http`: requests of Net::HTTP, and so of most clients built on it, by host and port. The time is that
    # of the whole request, with connecting and with reading the body where that is read inside. A request
    # that is made while another runs, as in the block that takes its response, has its time to itself.
    class Http < Client
      # Set in the fiber: the innermost request that runs.
      INSIDE = :memprof_http_request
      private_constant :INSIDE

      # A request that runs.
      class Call
        attr_reader :client
        attr_reader :outer

        def initialize(client, outer)
          @client = client
          @outer = outer
          @connects = !client.started?
          @inner = @inner_wait = 0.0
        end

        # A client that has to connect first calls itself, once.
        def again?(client)
          again = @connects && @client.equal?(client)
          @connects = false if again
          again
        end

        def sent?
          !@connects
        end

        def own(time, wait)
          [[time - @inner, 0.0].max, [wait - @inner_wait, 0.0].max]
        end

        def add(time, wait)
          @inner += time
          @inner_wait += wait
        end
      end

      class << self
        # Tells of a request.
        def requested(client)
          followers = running
          call = Native.quiet { Call.new(client, Thread.current[INSIDE]) }
          began = Clock.now
          waited = Native.gvl_wait
          response = nil
          begin
            Thread.current[INSIDE] = call
            response = yield
          ensure
            finish(call, response, followers, began, waited)
          end
        end

        def quiet?(client)
          running.empty? || Thread.current[INSIDE]&.again?(client)
        end

        private

        # One that could not connect is no request.
        def finish(call, response, followers, began, waited)
          Thread.current[INSIDE] = call.outer
          return unless response || call.sent?

          tell(followers, began, waited) do |http, time, wait|
            http.requested(call.client.address, call.client.port, response, *call.own(time, wait))
          end
          wait = Native.gvl_wait - waited
          call.outer&.add(Clock.now - began - wait, wait)
        end
      end

      # To be prepended to Net::HTTP.
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
        code = response.respond_to?(:code) ? response.code.to_s : "error"
        @responses[code] = @responses.fetch(code, 0) + 1
      end

      def report
        @hosts.empty? ? {} : { **@total, "hosts" => @hosts, "responses" => @responses }
      end
    end
  end
end
