# frozen_string_literal: true

require_relative "../errors"
require_relative "../native"
require_relative "../web"
require_relative "deltas"
require_relative "exposition"
require_relative "metrics"
require_relative "totals"

module Memprof
  module Agent
    # What the agent measures, for programs that fetch it, as a Rack application: `/debug/pprof/heap` and
    # `/debug/pprof/allocs` for `go tool pprof`, Parca, Alloy and the collector of OpenTelemetry, and
    # `/metrics` for Prometheus. See docs/agent.md.
    #
    # Every request gets 404 until access is granted by {permit} or by a token.
    #
    # @example In config/routes.rb of a Rails application
    #   Memprof::Agent::Endpoints.permit { |env| env["REMOTE_ADDR"] == "127.0.0.1" }
    #   mount Memprof::Agent::Endpoints => "/"
    # @example In config.ru, for scrapers that send `Authorization: Bearer TOKEN`
    #   Memprof::Agent::Endpoints.token = ENV.fetch("SECRET_OF_OUR_OWN")
    #   map("/memprof") { run Memprof::Agent::Endpoints }
    class Endpoints
      TYPES = { "/debug/pprof/heap" => "inuse_space", "/debug/pprof/allocs" => "alloc_space" }.freeze
      METRICS = "/metrics"
      ALLOW = "call Memprof::Agent::Endpoints.permit, or set MEMPROF_AGENT_TOKEN"
      LOCK = Mutex.new
      private_constant :TYPES, :METRICS, :ALLOW, :LOCK

      class << self
        # Answers a request with the application that all mounts share.
        #
        # @param env [Hash] of Rack
        # @return [Array] status, headers, body
        # @example
        #   env = { "REQUEST_METHOD" => "GET", "PATH_INFO" => "/metrics" }
        #   Memprof::Agent::Endpoints.call(env).first # => 404
        def call(env) = shared.call(env)

        # Grants access.
        #
        # @yieldparam env [Hash] of Rack
        # @yieldreturn [Object] whether the request is allowed. If the block raises, it is denied
        # @return [void]
        # @raise [ArgumentError] without a block
        # @example
        #   Memprof::Agent::Endpoints.permit { |env| env["REMOTE_ADDR"] == "127.0.0.1" }
        def permit(&block)
          raise ArgumentError, "block required" unless block

          @gate.permit(&block)
          nil
        end

        # Sets a token that grants access, too, as `Authorization: Bearer TOKEN`. The default is the
        # environment variable MEMPROF_AGENT_TOKEN, if set.
        #
        # @param token [String, nil] 8 characters or more; nil for none
        # @return [String, nil] token
        # @raise [ArgumentError] if it is too short
        # @example
        #   Memprof::Agent::Endpoints.token = "correct horse battery staple"
        def token=(token)
          @gate.token = token
        end

        private

        def shared = @shared || LOCK.synchronize { @shared ||= new(gate: @gate) }
      end

      @gate = Web::Gate::Mounted.new(variable: "MEMPROF_AGENT_TOKEN", owner: name)

      # @api private
      # `gate` has `answer`, as those of Web; `threads` of the server may wait for deltas.
      def initialize(gate:, totals: Totals.shared, threads: 1)
        @gate = gate
        @totals = totals
        @metrics = Metrics.new(totals)
        @deltas = Deltas.new(totals, threads: threads)
      end

      # @api private
      def call(env)
        # Requests to memprof are not the application's.
        env["memprof.web"] = true
        request = Web::Request.new(env)
        Native.quiet { answer(request) }
      end

      # @api private
      # Answers requests that wait for a delta now.
      def close = @deltas.close

      # @api private
      # Number of requests that wait for a delta.
      def waiting = @deltas.size

      private

      # Nothing is looked up for requests that the gate denies.
      def answer(request)
        refusal = @gate.answer(request)
        return refused(refusal, request) if refusal

        type = TYPES[request.path]
        return rack(missing, request) unless type || request.path == METRICS
        return rack(Web::Response.text(405, "expected GET or HEAD\n"), request) unless request.verb == "GET"
        return rack(metrics(request), request) unless type

        seconds = seconds(request)
        if seconds.nil? || request.head? || !(Agent.running? || @totals.profile)
          return rack(profile(@totals.pprof(type), request.path), request)
        end

        @deltas.answer(request.env, type, seconds) { |bytes| profile(bytes, request.path) }
      rescue Web::BadRequest => e
        rack(Web::Response.text(400, "#{e.message}\n"), request)
      rescue StandardError, ScriptError => e
        failed(request, e)
      end

      # The answer hides that anything is there, so a log says that no access is granted.
      def refused(refusal, request)
        known = request.path == METRICS || TYPES.key?(request.path)
        if known && !@warned && @gate.respond_to?(:closed?) && @gate.closed?
          @warned = true
          request.env["rack.errors"]&.write("memprof: #{request.path} answers 404, as no request is " \
                                            "permitted: #{ALLOW}\n")
        end
        rack(refusal, request)
      end

      # How long to wait for a delta, or nil.
      def seconds(request)
        text = request.params["seconds"] or return
        number = Integer(text, 10, exception: false)
        return number if number&.between?(1, Deltas::LONGEST)

        raise Web::BadRequest, "invalid seconds #{text[0, 40].inspect}; expected a number from 1 to " \
                               "#{Deltas::LONGEST}"
      end

      def profile(bytes, path)
        return unknown if bytes.nil?

        # As Go's: for a browser it is a file.
        Web::Response.new(200, "application/octet-stream", bytes, "cache-control" => "no-store",
          "content-disposition" => %(attachment; filename="#{File.basename(path)}.pb.gz"),
          "x-content-type-options" => "nosniff")
      end

      # Before the end of the first interval.
      def unknown
        return Web::Response.text(503, "the agent is not running\n") unless Agent.running?

        response = Web::Response.text(503, "the first interval has not ended yet\n")
        response.headers["retry-after"] = Agent.settings.fetch(:interval, 1).ceil.to_s
        response
      end

      def metrics(request)
        format = Exposition.accepted(request.header("Accept"))
        Web::Response.new(200, Exposition::TYPES.fetch(format), @metrics.text(format),
          "cache-control" => "no-store", "vary" => "accept", "x-content-type-options" => "nosniff")
      end

      def missing = Web::Response.text(404, "Not found\n")

      # A router may have another route for a path that is not here. Rack 2 has other names of headers.
      def rack(response, request)
        status, headers, body = response.to_rack(head: request.head?)
        headers = headers.merge("x-cascade" => "pass", "X-Cascade" => "pass").slice(*headers.keys, cascade) if
          status == 404
        [status, headers, body]
      end

      def cascade = defined?(::Rack.release) && ::Rack.release.start_with?("2") ? "X-Cascade" : "x-cascade"

      # An internal error must not reach the server, whose report may include the environment.
      def failed(request, error)
        message = "#{error.class}: #{Printable.line(error.message.lines.first.to_s)[0, 200]}"
        place = "#{message} (#{error.backtrace&.first})"
        request.env["rack.errors"]&.write("memprof: #{request.path}: #{place}\n")
        rack(Web::Response.text(500, "internal error in memprof (please report it)\n"), request)
      end
    end
  end
end
