# frozen_string_literal: true

require "memprof"
require_relative "live/request_recorder"

module Memprof
  class Web
    # Rack middleware that traces requests when the page `/live` of {Memprof::Web} asks for a number of them.
    # Otherwise it only passes requests on. Traces are kept in memory and never written; {Memprof::Tracer}
    # writes a file.
    #
    # Status, headers and body are passed on unchanged. Works with Rack 2 and 3 and requires neither.
    #
    # @example config.ru
    #   require "memprof/web"
    #   use Memprof::Web::Tracing
    #   map("/memprof") { run Memprof::Web }
    #   run ->(env) { [200, { "content-type" => "text/plain" }, ["hello"]] }
    # @example config/application.rb of a Rails application
    #   config.middleware.insert(0, Memprof::Web::Tracing)
    class Tracing
      # @param app [#call] the Rack app
      # @param recorder [Live::RequestRecorder] shared with this process's pages
      # @example
      #   Memprof::Web::Tracing.new(->(_env) { [204, {}, []] }).call({}).first # => 204
      def initialize(app, recorder: Live::RequestRecorder.shared)
        @app = app
        @recorder = recorder
        recorder.installed = true
      end

      # Runs the app, traced if a trace is wanted.
      #
      # @param env [Hash] the Rack environment
      # @return [Array] the app's response
      # @example
      #   Memprof::Web::Tracing.new(->(env) { [200, {}, [env["PATH_INFO"]]] }).call({ "PATH_INFO" => "/" })
      def call(env)
        return @app.call(env) unless @recorder.wanted?

        @recorder.trace(env) { @app.call(env) }
      end
    end
  end
end
