# frozen_string_literal: true

module Memprof
  class Middleware
    # Answers a request with what it allocated, in place of the app's own response:
    # `?memprof=allocations`, `retained` or `flame`. With `.json` or `.txt` the answer is not a page, whatever
    # the client accepts: the app sees `Accept`, too, and Rails refuses it if the action has no such format.
    #
    # A request's retained objects are known once it is over, so `retained` redirects to `retained-NAME`.
    class Endpoint
      VIEWS = %w[allocations retained flame].freeze
      RETAINED = "retained"
      FORMATS = { "json" => "application/json", "txt" => "text/plain" }.freeze
      PARAMETER =
        /(?<before>\A|&)memprof=(?:(?<view>#{VIEWS.join("|")})|#{RETAINED}-(?<name>\h+))
         (?<ending>\.(?<format>#{FORMATS.keys.join("|")}))?(?=&|\z)/x
      # Maximum number of frames per stack in a flame graph.
      STACK = 256
      private_constant :FORMATS, :PARAMETER, :STACK

      # The view that a query string asks for, or nil.
      def self.wish(query) = PARAMETER.match(query)

      # The query string with another view.
      def self.rewrite(query, view) = query.sub(PARAMETER) { "#{$~[:before]}memprof=#{view}#{$~[:ending]}" }

      # Access control, unless the application sets its own: everybody, in development.
      def self.development?(_env)
        return ::Rails.env.development? if defined?(::Rails) && ::Rails.respond_to?(:env)

        ENV["RACK_ENV"] == "development"
      end

      def initialize(app, env, wish, pending, limit: nil)
        @app = app
        @env = env
        @name = wish[:name]
        @view = wish[:view] || RETAINED
        @format = FORMATS[wish[:format]] || env["HTTP_ACCEPT"].to_s
        @pending = pending
        @limit = limit
      end

      # Runs the app to the end of its response, which is discarded. Its exceptions propagate.
      def call
        return result if @name
        return redirect if @view == RETAINED

        present(measure)
      end

      private

      def present(summary)
        case @format
        when %r{application/json} then answer("application/json", json(summary))
        when %r{text/plain} then answer("text/plain", summary.to_s)
        else html(summary)
        end
      end

      def measure
        Session.run(scope: :thread, stack: @view == "flame" ? STACK : 1) do |session|
          status = run(session)
          session.collect
          Summary.new(session.report, Summary::Request.of(@env, status), retained: false, limit: @limit)
        end
      end

      def redirect
        session = Session.prepare(scope: :thread)
        begin
          session.open
          status = run(session)
          name = @pending.add(session, Summary::Request.of(@env, status), @env)
        ensure
          session.close unless name
        end
        target = "?#{self.class.rewrite(@env["QUERY_STRING"], "#{RETAINED}-#{name}")}"
        text = "What the request retains is known when it is over: GET #{target} (curl -L does)"
        answer("text/plain", text, { "location" => target }, status: 303)
      end

      def result
        summary = @pending.summary(@name, @limit)
        return present(summary) if summary

        text = "process #{Process.pid} has no result #{@name}: it was measured by another process of this " \
               "server, or too long ago; ask again with memprof=#{RETAINED}"
        answer("text/plain", text, status: 404)
      end

      def run(session)
        Native.run_deep { finish_response(@app.call(@env)) }
      ensure
        session.finish
      end

      # As a server does. Nothing references the response afterwards.
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
        answer("text/html", view.render, { "content-security-policy" => view.policy })
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

      def answer(type, text, headers = {}, status: 200)
        text = "#{text.to_str}\n"
        headers = { "content-type" => "#{type}; charset=utf-8", "content-length" => text.bytesize.to_s,
                    "cache-control" => "no-store", "x-content-type-options" => "nosniff", **headers }
        [status, headers, @env["REQUEST_METHOD"] == "HEAD" ? [] : [text]]
      end
    end
  end
end
