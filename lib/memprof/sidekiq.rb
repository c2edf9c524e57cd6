# frozen_string_literal: true

require "memprof"
require_relative "clock"
require_relative "printable"
require_relative "rails/counting"

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

    # The allocations of one job by call stack, in Redis where the tab Profiles of Sidekiq 8 finds them. Has
    # names of code, never values of the program. A failure in here never becomes the job's.
    #
    # @api private
    class JobProfile
      # The option of jobs that ask for a profile.
      OPTION = "memprof"
      TOKEN = "memprof"
      # Keys of all profiles, by the time at which they expire.
      INDEX = "profiles"
      # Seconds.
      EXPIRY = 86_400
      # Frames.
      STACK = 256
      # Maximum compressed bytes: Redis has them in memory.
      LARGEST = 16 * 1024 * 1024
      private_constant :TOKEN, :INDEX, :EXPIRY, :STACK, :LARGEST

      def initialize(job)
        @job = job
      end

      # Tracks a block on this thread. A block that raises has no profile, as with Sidekiq's own profiler.
      def run
        session = guard { Session.prepare(scope: :thread, stack: STACK) }
        recording = session && guard { session.open || true }
        started = Time.now
        began = Clock.now
        value = yield
        guard { publish(session, started, Clock.now - began) } if recording
        value
      ensure
        guard { session&.close }
      end

      private

      def guard
        yield
      rescue StandardError, LoadError => e
        warn("#{e.message} (#{e.class})")
        nil
      end

      def warn(message)
        ::Sidekiq.logger.warn("memprof: no profile of #{name}: #{Printable.line(message)}")
      rescue StandardError
        nil # without a logger
      end

      def name = Printable.utf8((@job["wrapped"] || @job["class"]).to_s)

      def publish(session, started, elapsed)
        session.finish
        data = compressed(session)
        if data.bytesize > LARGEST
          raise Error, "its #{data.bytesize} bytes are more than #{LARGEST} bytes"
        end

        store("started_at" => started.to_i, "token" => TOKEN, "type" => name, "jid" => @job["jid"].to_s,
          "elapsed" => elapsed.round(6), "size" => data.bytesize, "data" => data)
      end

      def compressed(session)
        Loading.load("zlib")
        Native.quiet { Zlib.gzip(session.profile.export("firefox", "allocated_bytes")) }
      end

      # Removes expired ones, as a Sidekiq before 8 does not, and what the tab knows of an earlier run.
      def store(record)
        key = "#{TOKEN}-#{record["jid"]}"
        now = Time.now.to_f
        ::Sidekiq.redis do |redis|
          redis.multi do |all|
            all.zremrangebyscore(INDEX, "-inf", now.to_s)
            all.zadd(INDEX, now + EXPIRY, key)
            all.del(key)
            all.hset(key, record)
            all.expire(key, EXPIRY)
          end
        end
      end
    end
  end
end

Memprof::Sidekiq.install
