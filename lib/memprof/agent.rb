# frozen_string_literal: true

require_relative "agent/switch"
require_relative "bundler_exec"

module Memprof
  # Profiles a program continuously: which lines allocate, what is alive, where the memory goes, and at which
  # cost. `require "memprof/agent"` starts it, unless `MEMPROF_AGENT=off`, or this is a console, a generator,
  # a task or a test.
  #
  # @example
  #   require "memprof/agent"
  #   Memprof::Agent.start(interval: 30, limit: "90%")
  #   Memprof::Agent.subscribe { |interval| puts interval.report.first }
  module Agent
    autoload :Endpoints, "#{__dir__}/agent/endpoints"
    autoload :Interval, "#{__dir__}/agent/interval"
    autoload :Leak, "#{__dir__}/agent/leak"
    autoload :Totals, "#{__dir__}/agent/totals"
    autoload :Trends, "#{__dir__}/agent/trends"
    autoload :Work, "#{__dir__}/agent/work"

    # A block that {Agent.subscribe} registered.
    class Subscription
      # @api private
      def initialize(block) = @block = block

      # Calls the block no longer.
      #
      # @return [Boolean] true, or false if it was not registered any more
      # @example
      #   subscription = Memprof::Agent.subscribe { |interval| p interval }
      #   subscription.unsubscribe # => true
      def unsubscribe = Agent.remove(self)

      # @api private
      def call(interval) = @block.call(interval)
    end

    @subscriptions = [].freeze

    class << self
      # Starts the agent. One that `require "memprof/agent"` has started is started anew with these settings.
      #
      # @param settings [Hash{Symbol => Object}] see docs/agent.md; those in `MEMPROF_AGENT` win
      # @return [Boolean] true, or false if it was running already, or if it can't run here
      # @raise [ArgumentError] if a setting is unknown or invalid
      # @example
      #   Memprof::Agent.start(interval: 30)
      #   Memprof::Agent.stop
      def start(**settings)
        return false if Switch.off?

        load_parts
        Runner.start(settings)
      end

      # Stops the agent, and discards its intervals.
      #
      # @return [Boolean] true, or false if it was not running
      # @example
      #   Memprof::Agent.stop
      def stop = loaded? && Runner.stop

      # @return [Boolean] whether the agent is running in this process
      # @example
      #   Memprof::Agent.running?
      def running? = loaded? && Runner.running?

      # @return [Hash{Symbol => Object}] the settings of the running agent; empty if none is running
      # @example
      #   Memprof::Agent.settings[:interval]
      def settings = loaded? ? Runner.settings : {}

      # @return [Array<Interval>] the last intervals, oldest first
      # @example
      #   Memprof::Agent.intervals.last&.report
      def intervals = loaded? ? Runner.intervals : []

      # Calls a block with each {Interval}, on the agent's thread. If it raises, that is logged once.
      #
      # @yieldparam interval [Interval]
      # @return [Subscription] whose `unsubscribe` ends that
      # @raise [ArgumentError] without a block
      # @example
      #   subscription = Memprof::Agent.subscribe { |interval| p interval.to_h }
      #   subscription.unsubscribe
      def subscribe(&block)
        raise ArgumentError, "block required" unless block

        Subscription.new(block).tap { |added| @subscriptions = [*@subscriptions, added].freeze }
      end

      # @return [Array<Leak>] sites of this service that leak, as far as this host knows; fastest first
      # @example
      #   Memprof::Agent.leaks.each { |leak| puts leak }
      def leaks = loaded? ? Runner.leaks : []

      # @return [Hash{Symbol => Object}] names for this process: `:service`, `:release` (nil if unknown),
      #   `:host`, `:worker`, `:pid`
      # @example
      #   Memprof::Agent.labels[:service]
      def labels
        load_parts
        Runner.labels
      end

      # What the control socket answers: plain values.
      #
      # @api private
      def state = Runner.state

      # @api private
      attr_reader :subscriptions

      # @api private
      def remove(subscription)
        known = @subscriptions.include?(subscription)
        @subscriptions = (@subscriptions - [subscription]).freeze
        known
      end

      private

      def loaded? = !autoload?(:Runner) && const_defined?(:Runner, false)

      def load_parts
        BundlerExec.load_path
        # Before Rails is loaded, the application connects memprof to it, by its own `require "memprof"`.
        require(defined?(::Rails::Railtie) && !defined?(Railtie) ? "memprof" : "memprof/api")
        require_relative "agent/runner"
      end

      # Where this file is loaded. A program that cannot be profiled must still run.
      def start_automatically
        return unless Switch.on?

        load_parts
        Runner.start(automatic: true)
      rescue LoadError, StandardError => e
        write_failure(e)
      end

      # Without a class of memprof, as it may be what could not be loaded.
      def write_failure(error)
        $stderr.write("memprof: the agent is off: #{error.message.lines.first.to_s.chomp.inspect[1..-2]}\n")
      rescue SystemCallError, IOError
        nil # stderr is closed
      end
    end
  end
end

Memprof::BundlerExec.prepare(ENV, "memprof/agent")
Memprof::Agent.send(:start_automatically) unless Memprof::BundlerExec.command?
