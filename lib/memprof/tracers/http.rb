# frozen_string_literal: true

require_relative "client"

module Memprof
  module Tracers
    # `http`: requests of Net::HTTP, and so of most clients built on it, by host. The time is that of the
    # whole request, with connecting and with reading the body where that is read inside. A request that is
    # made while another runs, as in the block that takes its response, has its time to itself.
    #
    # @api private
    class Http < Client
      # Set in the fiber: the innermost request that runs.
      INSIDE = :memprof_http_request
      private_constant :INSIDE

      # A request that runs.
      class Call
        # @return [Call, nil] that this one is made in
        attr_reader :outer
        # @return [Float] seconds of the requests that are made in this one
        attr_reader :inner

        # @param client [Net::HTTP]
        # @param outer [Call, nil]
        def initialize(client, outer)
          @client = client
          @outer = outer
          @connects = !client.started?
          @inner = 0.0
        end

        # A client that has to connect first calls itself, once.
        #
        # @param client [Net::HTTP] that makes a request
        # @return [Boolean] whether the request is this one
        def again?(client)
          again = @connects && @client.equal?(client)
          @connects = false if again
          again
        end

        # @param seconds [Float] that a request took which was made in this one
        # @return [void]
        def add(seconds)
          @inner += seconds
        end
      end

      class << self
        # Tells of a request.
        #
        # @param client [Net::HTTP]
        # @yield sends it
        # @yieldreturn [#code] the response
        # @return [#code] the same
        def requested(client)
          followers = running
          call = Native.quiet { Call.new(client, Thread.current[INSIDE]) }
          began = Clock.now
          response = nil
          begin
            Thread.current[INSIDE] = call
            response = yield
          ensure
            finish(call, followers, began, client.address, response)
          end
        end

        # @param client [Net::HTTP] that makes a request
        # @return [Boolean] whether to say nothing: nobody listens, or it is said already
        def quiet?(client)
          running.empty? || Thread.current[INSIDE]&.again?(client)
        end

        private

        def finish(call, followers, began, host, response)
          Thread.current[INSIDE] = call.outer
          tell(followers, began) { |http, time| http.requested(host, response, time - call.inner) }
          call.outer&.add(Clock.now - began)
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

      # @param host [String]
      # @param response [#code, nil] nil if there was none
      # @param time [Float] seconds
      # @return [void]
      def requested(host, response, time)
        count(@total, time)
        count(@hosts[host.to_s] ||= {}, time)
        code = response.respond_to?(:code) ? response.code.to_s : "error"
        @responses[code] = @responses.fetch(code, 0) + 1
      end

      # @return [Hash]
      def report
        @hosts.empty? ? {} : { **@total, "hosts" => @hosts, "responses" => @responses }
      end
    end
  end
end
