# frozen_string_literal: true

require_relative "client"

module Memprof
  module Tracers
    # `http`: requests of Net::HTTP, and so of most clients built on it, by host. The time is that of the
    # whole request, with connecting and with reading the body where that is read inside.
    #
    # @api private
    class Http < Client
      # Set in the fiber while a request that was counted runs: one that has to connect first calls itself.
      INSIDE = :memprof_http_request
      private_constant :INSIDE

      # Tells of a request.
      #
      # @param host [String]
      # @yield sends it
      # @yieldreturn [#code] the response
      # @return [#code] the same
      def self.requested(host)
        followers = running
        began = Clock.now
        response = nil
        begin
          Thread.current[INSIDE] = true
          response = yield
        ensure
          Thread.current[INSIDE] = nil
          tell(followers, began) { |client, time| client.requested(host, response, time) }
        end
      end

      # @return [Boolean] whether to say nothing: nobody listens, or it is said already
      def self.quiet?
        running.empty? || Thread.current[INSIDE]
      end

      # To be prepended to Net::HTTP.
      module Requests
        def request(*)
          Http.quiet? ? super : Http.requested(address) { super }
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
