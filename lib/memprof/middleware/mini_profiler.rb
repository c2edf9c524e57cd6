# frozen_string_literal: true

module Memprof
  class Middleware
    # A row in the panel of rack-mini-profiler, around the request: the number of objects it allocated.
    class MiniProfiler
      NAME = "objects"
      private_constant :NAME

      # True if the gem is loaded, profiles this request, and shows it to this client.
      def self.profiles?
        return false unless defined?(::Rack::MiniProfiler)

        ::Rack::MiniProfiler.respond_to?(:step) && !::Rack::MiniProfiler.current.nil?
      rescue StandardError
        false # a version with another interface
      end

      def initialize(app, session)
        @app = app
        @session = session
      end

      def call(env)
        ::Rack::MiniProfiler.step(NAME) do
          @app.call(env)
        ensure
          name_row
        end
      end

      private

      # These objects do not count as the request's.
      def name_row
        Native.quiet do
          timer = ::Rack::MiniProfiler.current&.current_timer
          timer[:name] = text if timer
        end
      rescue StandardError
        nil # the request is worth more than its row
      end

      def text
        rows = @session.counts
        allocated = rows.sum { |_, _, (objects, _)| objects }
        alive = rows.sum(&:first)
        "#{Units.objects(allocated)} allocated, #{Units.count(alive)} alive"
      end
    end
  end
end
