# frozen_string_literal: true

module Memprof
  module Agent
    # Starts what the settings `listen` and `profiles` ask for; each part is loaded only then.
    #
    # @api private
    class Served
      # `log` has `info` and `warn`.
      def initialize(settings, log:)
        @address = settings[:listen]
        @profiles = settings[:profiles]
        @log = log
      end

      # A mistake here must not end the agent.
      def start
        listen if @address
        write_files if @profiles
      rescue Error, ArgumentError => e
        @log.warn(e.message)
      end

      def stop
        @subscription&.unsubscribe
        @listener&.stop
        @subscription = @listener = nil
      end

      # In a forked child, before it starts its own.
      def after_fork
        @subscription&.unsubscribe
        @listener&.after_fork
        @subscription = @listener = nil
      end

      # Where it listens, or nil.
      def url = @listener&.url

      private

      def listen
        require_relative "listener"
        @listener = Listener.new(@address).start
        @log.info("listens on #{@listener.url}")
      end

      def write_files
        require_relative "receivers"
        files = Receivers::Files.new(@profiles)
        @subscription = Agent.subscribe { |interval| files.call(interval) }
      end
    end
  end
end
