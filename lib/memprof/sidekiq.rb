# frozen_string_literal: true

require "memprof"
require_relative "rails/counting"
require_relative "sidekiq/job_profile"

module Memprof
  # Counts what each class of Sidekiq jobs costs, for the agent's metrics, and profiles the allocations of
  # jobs that ask for it: in the server process, `require "memprof/sidekiq"` after Sidekiq is enough.
  #
  # The profile of a job that has `memprof` among its options appears in the tab Profiles of Sidekiq 8; see
  # docs/agent.md.
  #
  # @example
  #   require "memprof/sidekiq"
  #   Memprof::Sidekiq.install(agent: { limit: "90%" })
  module Sidekiq
    # A server middleware. {Sidekiq.install} adds it; an embedded Sidekiq needs it in its configuration.
    class Middleware
      # Runs a job.
      #
      # @param _instance [Object] of the job's class
      # @param job [Hash{String => Object}] as Sidekiq has read it from Redis
      # @param _queue [String]
      # @yield the job
      # @return [Object] the block's value
      # @example
      #   require "memprof/sidekiq"
      #   job = { "class" => "MailJob", "jid" => "7f" }
      #   Memprof::Sidekiq::Middleware.new.call(nil, job, "default") { 7 } # => 7
      def call(_instance, job, _queue, &perform)
        return count(job, &perform) unless job[JobProfile::OPTION]

        JobProfile.new(job).run { count(job, &perform) }
      end

      private

      # Jobs of Active Job are counted here only if the Railtie doesn't count them. That is known at the end:
      # Active Job may be loaded by its first job.
      def count(job, &perform)
        wrapped = job["wrapped"]
        name = -> { wrapped || job["class"] unless wrapped && Rails::Counting.jobs? }
        Rails::Counting.around(:job, name, &perform)
      end
    end

    class << self
      # Adds the middleware to Sidekiq's server; elsewhere, as in a client, nothing changes. Loading this file
      # calls it.
      #
      # @param agent [Boolean, Hash{Symbol => Object}] also start the agent when the server starts: true, or
      #   its settings
      # @return [Boolean] true, or false if Sidekiq is not loaded
      # @raise [ArgumentError] if `agent` is something else
      # @example
      #   require "memprof/sidekiq"
      #   Memprof::Sidekiq.install(agent: true)
      def install(agent: false)
        unless agent.nil? || agent == true || agent == false || agent.is_a?(Hash)
          raise ArgumentError, "agent must be true, false or a Hash of settings, not #{agent.inspect}"
        end
        return false unless defined?(::Sidekiq.configure_server)

        ::Sidekiq.configure_server { |config| configure(config, agent) }
        true
      end

      private

      def configure(config, agent)
        config.server_middleware { |chain| chain.add(Middleware) }
        count_queries
        config.on(:startup) { start_agent(agent == true ? {} : agent) } if agent
      end

      def count_queries
        return unless defined?(::ActiveSupport.on_load)

        ::ActiveSupport.on_load(:active_record) { Rails::Counting.queries }
      end

      # Settings in code replace an agent that has started by itself. A mistake must not end the server.
      def start_agent(settings)
        require "memprof/agent"
        Agent.start(**settings)
      rescue LoadError, StandardError => e
        ::Sidekiq.logger.warn("memprof: the agent is off: #{e.message.lines.first.to_s.chomp}")
      end
    end
  end
end

Memprof::Sidekiq.install
