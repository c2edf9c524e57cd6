# frozen_string_literal: true

require_relative "rails/settings"

module Memprof
  # Connects memprof to a Rails application: `gem "memprof"` in the Gemfile is enough. At boot it only reads
  # `config.memprof`; see docs/rails.md.
  class Railtie < ::Rails::Railtie
    config.memprof = Rails::Settings.new

    initializer "memprof.web" do |app|
      # After the application's own routes, so that where and how it mounts Memprof::Web itself counts.
      app.routes.append { Railtie.mount(self) unless has_named_route?(:memprof_web) }
    end

    rake_tasks do
      require_relative "rails/arguments"
      require_relative "rails/routes"
      load File.join(__dir__, "rails/tasks.rake")
    end

    console do
      require_relative "rails/console"
      TOPLEVEL_BINDING.receiver.extend(Rails::Console)
    end

    class << self
      # Mounts Memprof::Web. In development, requests of this machine are permitted.
      #
      # @api private
      def mount(routes)
        settings = config.memprof
        path = settings.web_path(development: ::Rails.env.development?) or return

        if settings.permit
          Web.permit { |env| settings.permit.call(env) }
        elsif !Web.send(:gate).permits?
          Web.permit { |env| local?(env) }
        end
        routes.mount(Web => path)
      end

      # @api private
      def start
        count if config.memprof.requests?
        start_agent if config.memprof.enabled?
      end

      private

      def count
        require_relative "rails/counting"
        ::ActiveSupport.on_load(:action_controller) { Rails::Counting.controllers(self) }
        ::ActiveSupport.on_load(:active_job) { Rails::Counting.jobs(self) }
        ::ActiveSupport.on_load(:active_record) { Rails::Counting.queries }
      end

      # Settings in code replace an agent that has started by itself.
      def start_agent
        require_relative "agent/switch"
        return unless Agent::Switch.on?

        require "memprof/agent"
        Agent.start(**config.memprof.agent)
      rescue LoadError, StandardError => e
        ::Rails.logger&.warn("memprof: the agent is off: #{e.message.lines.first.to_s.chomp}")
      end

      # Without a proxy in between: a header could name any address.
      def local?(env)
        ["127.0.0.1", "::1"].include?(env["REMOTE_ADDR"]) && !env.key?("HTTP_X_FORWARDED_FOR") &&
          !env.key?("HTTP_FORWARDED")
      end
    end

    # After the application's initializers, which may set what is read here. In an application that has
    # booted, as in a console, the block runs at once.
    config.after_initialize { start }
  end
end
