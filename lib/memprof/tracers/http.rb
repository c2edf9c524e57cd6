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

      # Hooks into gems with their own HTTP implementation: excon, httpclient, curb, and ethon (for typhoeus).
      # Gems built on others, such as faraday and rest-client, are counted by those.
      module ClientGems
        # Scheme, host and port of a URL; the part before the host may contain a password.
        URL = %r{\A(\w+)://(?:[^/?\#@]*@)?(\[[^\]]*\]|[^/:?\#]*)(?::(\d+))?}
        PORTS = { "http" => 80, "https" => 443 }.freeze
        # libcurl's codes if a request was not sent: no proxy, no host, no connection.
        NOT_SENT = [5, 6, 7].freeze
        NOT_SENT_NAMES = %i[couldnt_resolve_proxy couldnt_resolve_host couldnt_connect].freeze
        private_constant :URL, :PORTS, :NOT_SENT, :NOT_SENT_NAMES

        def self.place(url)
          scheme, host, port = url.to_s.match(URL)&.captures
          [host.to_s, port || PORTS[scheme.to_s.downcase]]
        end

        # Whether a request of curb was sent.
        def self.sent?(easy) = !NOT_SENT.include?(easy.last_result)

        # Records a finished transfer. Nothing raised here reaches the program.
        def self.ended(easy)
          return if NOT_SENT_NAMES.include?(easy.return_code)

          Http.ended(*place(easy.effective_url), easy.response_code, easy.total_time.to_f)
        rescue StandardError
          nil
        end

        # Records a transfer of curb that a Curl::Multi has finished, except for a Curl::Easy that performs
        # alone, which is counted there. A transfer canceled before a response has no code.
        def self.multi_ended(multi, easy)
          return if Http.inside?(easy) || !multi.requests.value?(easy) || !sent?(easy)

          code = easy.response_code
          return if code.zero? && easy.last_result.zero?

          Http.ended(*place(easy.last_effective_url), code, easy.total_time.to_f)
        rescue StandardError
          nil
        end

        # Prepended to Excon::Connection.
        module Excon
          def request(params = {}, *)
            return super if Http.running.empty? || params[:pipeline]

            host, port = Native.quiet { data.values_at(:host, :port) }
            Http.request(host, port) { super }
          end
        end

        # Prepended to HTTPClient: each redirect passes through here, too.
        module HttpClient
          private

          def do_get_block(request, *)
            return super if Http.running.empty?

            uri = request.header.request_uri
            Http.request(uri.host, uri.port) { super }
          end
        end

        # Prepended to Curl::Easy.
        module Curb
          def perform
            return super if Http.running.empty?

            host, port = Native.quiet { ClientGems.place(url) }
            done = nil
            Http.request(host, port, self) do
              done = super
              response_code if response_code.positive?
            end
            done
          end
        end

        # Prepended to Curl::Multi, which removes each transfer when it has finished, before its callbacks.
        module CurbMulti
          def perform(*)
            return super if Http.running.empty?

            begin
              @memprof_performs = true
              super
            ensure
              @memprof_performs = false
            end
          end

          def remove(easy)
            Native.quiet { ClientGems.multi_ended(self, easy) } if @memprof_performs && !Http.running.empty?
            super
          end
        end

        # Prepended to Ethon::Easy, whose transfers may run concurrently.
        module Ethon
          def complete(*)
            Native.quiet { ClientGems.ended(self) } unless Http.running.empty?
            super
          end
        end
      end
      private_constant :ClientGems

      hook "Net::HTTP", Requests
      hook "Excon::Connection", ClientGems::Excon
      hook "HTTPClient", ClientGems::HttpClient
      hook "Curl::Easy", ClientGems::Curb
      hook "Curl::Multi", ClientGems::CurbMulti
      hook "Ethon::Easy", ClientGems::Ethon

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
