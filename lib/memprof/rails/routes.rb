# frozen_string_literal: true

require "rack/mock"
require_relative "../table"
require_relative "../units"

module Memprof
  module Rails
    # Requests paths of the application in this process, and shows what a request allocates and retains.
    #
    # @api private
    class Routes
      # Requests of a path that are not measured: they load code and fill caches.
      WARM_UP = 3

      # The cost of requests to a path: allocated on average, retained by all of them. `status` is the last
      # answer's, or the class of what was raised.
      Cost = Struct.new(:path, :status, :objects, :bytes, :retained, :retained_bytes)
      private_constant :WARM_UP, :Cost

      def initialize(app)
        @app = app
      end

      # Paths of the application's own GET routes that need no parameter.
      def paths
        @app.reload_routes_unless_loaded if @app.respond_to?(:reload_routes_unless_loaded)
        routes = @app.routes.routes.select { |route| plain?(route) }
        routes.map { |route| without_optional(route.path.spec.to_s) }.uniq
      end

      # Calls the application with a GET request.
      #
      # @return [Integer] its status
      def request(path)
        status, _headers, body = @app.call(Rack::MockRequest.env_for(path, **environment))
        body.each(&:bytesize) if body.respond_to?(:each)
        status
      ensure
        body.close if body.respond_to?(:close)
      end

      # Costs of paths, those that allocate most first; pages of errors and redirects come last.
      def costs(paths, count)
        costs = paths.map { |path| cost(path, count) }
        costs.sort_by { |cost| [self.class.page?(cost.status) ? 0 : 1, -cost.objects, cost.path] }
      end

      # Whether an answer is the page that was asked for.
      def self.page?(status) = status.is_a?(Integer) && status.between?(200, 299)

      # A table of costs, for people.
      def table(costs)
        table = Table.new.columns(:request, :status, :count, :allocated).name("")
        costs.each do |cost|
          table.row(cost.path, cost.status, Units.count(cost.objects), Units.bytes(cost.bytes), stays(cost))
        end
        table
      end

      private

      def plain?(route)
        verb = route.verb.to_s
        !route.internal && route.dispatcher? && route.required_parts.empty? &&
          (verb.empty? || verb.split("|").include?("GET"))
      end

      # `/orders(.:format)` is also requested as `/orders`.
      def without_optional(path)
        shorter = path.gsub(/\([^()]*\)/, "")
        shorter == path ? path : without_optional(shorter)
      end

      def environment
        secure = @app.config.force_ssl ? { "HTTPS" => "on", "rack.url_scheme" => "https" } : {}
        { "REMOTE_ADDR" => "127.0.0.1", "HTTP_HOST" => "localhost", **secure }
      end

      def cost(path, count)
        status = nil
        run = ->(times) { times.times { status = answer(path) } }
        run.call(WARM_UP)
        report = Memprof.report(internal: false) { run.call(count) }
        mean = ->(total) { (total / count.to_f).round }
        Cost.new(path, status, mean.call(report.total_allocated), mean.call(report.total_allocated_memsize),
          report.total_retained, report.total_retained_memsize)
      end

      def stays(cost)
        return "" if cost.retained.zero?

        "#{Units.objects(cost.retained, cost.retained_bytes)} retained by all"
      end

      def answer(path)
        request(path)
      rescue StandardError, ScriptError => e
        e.class.name
      end
    end
  end
end
