# frozen_string_literal: true

module Memprof
  class Middleware
    # Answers a request with what it allocated, in place of the app's own response:
    # `?memprof=allocations`, `retained` or `flame`. With `.json` or `.txt` the answer is no page, whatever
    # the client accepts: the app sees `Accept`, too, and Rails refuses it if the action has no such format.
    class Endpoint
      VIEWS = %w[allocations retained flame].freeze
      FORMATS = { "json" => "application/json", "txt" => "text/plain" }.freeze
      PARAMETER = /(?:\A|&)memprof=(#{VIEWS.join("|")})(?:\.(?:#{FORMATS.keys.join("|")}))?(?:&|\z)/
      FORMAT = /(?:\A|&)memprof=\w+\.(\w+)(?:&|\z)/
      # Frames that are kept of a stack for a flame graph.
      STACK = 256
      private_constant :FORMATS, :PARAMETER, :FORMAT, :STACK

      # The view that a query string asks for, nil if none.
      def self.view(query) = query[PARAMETER, 1]

      # Who may ask, unless the application says so: anybody, in development.
      def self.development?(_env)
        return ::Rails.env.development? if defined?(::Rails) && ::Rails.respond_to?(:env)

        ENV["RACK_ENV"] == "development"
      end

      def initialize(app, env, view, limit: nil)
        @app = app
        @env = env
        @view = view
        @limit = limit
      end

      # Runs the app to the end of its response, which is thrown away. What it raises goes on.
      def call
        summary = measure
        case wanted
        when %r{application/json} then answer("application/json", json(summary))
        when %r{text/plain} then answer("text/plain", summary.to_s)
        else html(summary)
        end
      end

      private

      def wanted = FORMATS[@env["QUERY_STRING"][FORMAT, 1]] || @env["HTTP_ACCEPT"].to_s

      def measure
        Session.run(scope: :thread, stack: @view == "flame" ? STACK : 1) do |session|
          status = Native.run_deep { finish_response(@app.call(@env)) }
          session.finish
          session.collect
          Summary.new(session.report, @env, status, collected: true, limit: @limit,
            first: @view == "retained" ? :retained : :allocated)
        end
      end

      # As a server does. Nothing here refers to the response afterwards: it is not what the request retains.
      def finish_response(response)
        status, _headers, body = response
        body.each(&:itself) if body.respond_to?(:each)
        status
      ensure
        body.close if body.respond_to?(:close)
      end

      def html(summary)
        require_relative "endpoint_view"
        view = EndpointView.new(summary, @view, @env)
        answer("text/html", view.render, "content-security-policy" => view.policy)
      end

      def json(summary)
        Loading.json
        data = summary.to_h
        data[:flame] = flame(summary) if @view == "flame"
        JSON.generate(data, max_nesting: 0)
      end

      def flame(summary)
        require_relative "endpoint_view"
        EndpointView.flame(summary)
      end

      def answer(type, text, headers = {})
        text = "#{text.to_str}\n"
        headers = { "content-type" => "#{type}; charset=utf-8", "content-length" => text.bytesize.to_s,
                    "cache-control" => "no-store", "x-content-type-options" => "nosniff", **headers }
        [200, headers, @env["REQUEST_METHOD"] == "HEAD" ? [] : [text]]
      end
    end
  end
end
