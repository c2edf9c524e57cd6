# frozen_string_literal: true

require_relative "lock"
require_relative "native"
require_relative "tracers/fd"
require_relative "tracers/subscriber"
require_relative "tracers/http"
require_relative "tracers/memcache"
require_relative "tracers/mysql"
require_relative "tracers/plan"
require_relative "tracers/redis"
require_relative "tracers/sql"
require_relative "tracers/views"

module Memprof
  # The tracers that {Memprof.trace} has: each counts one kind of work and gives a Hash of numbers. Those of
  # the VM and of C libraries are in the extension; those of client gems are here, one a file; and a program
  # may register its own.
  #
  # @example A tracer of one's own
  #   Memprof::Tracers.register(:sleeps) do
  #     def start
  #       @before = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  #     end
  #
  #     def finish
  #       @after = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  #     end
  #
  #     def report
  #       { time: @after - @before }
  #     end
  #   end
  #   Memprof.trace(tracers: [:sleeps]) { sleep 0.01 }
  #   Memprof::Tracers.unregister(:sleeps)
  module Tracers
    # The order of a report: what a request spends its time on first.
    ORDER = %i[objects gc fd dns memory views sql mysql postgres sqlite memcache redis http resources
      threads].freeze
    # Of client gems, by the name of the tracer.
    CLIENTS = {
      fd: Fd, views: Views, sql: Sql, mysql: Mysql, memcache: Memcache, redis: Redis, http: Http
    }.freeze
    private_constant :ORDER, :CLIENTS

    # All tracers but some.
    Except = Struct.new(:names)
    private_constant :Except

    @own = {}.freeze
    @plans = {}.freeze
    @lock = Lock.new

    class << self
      # Adds a tracer. For each trace an instance is made; `start` is called before the block, `finish` behind
      # it on the same thread, and then `report`, which gives a Hash of what is to stand in the report. What
      # any of them raises stands there as `"error"`.
      #
      # @param name [Symbol, String] its key in the report
      # @param factory [#new, nil] makes the instance, as a class does; without it the block is the body of
      #   a class
      # @yield the body of a class that has the methods `start`, `finish` and `report`
      # @return [Symbol] the name
      # @raise [ArgumentError] if there is such a tracer, or a method is missing
      # @example
      #   Memprof::Tracers.register(:random) do
      #     def start = @before = Random.rand
      #     def finish = nil
      #     def report = { before: @before }
      #   end
      #   Memprof::Tracers.unregister(:random)
      def register(name, factory = nil, &body)
        name = name.to_sym
        raise ArgumentError, "a tracer needs a class or a block" unless factory || body
        raise ArgumentError, "a class or a block, not both" if factory && body

        factory ||= Class.new(&body)
        check_factory(name, factory)
        @lock.synchronize do
          raise ArgumentError, "there is a tracer #{name} already" if names.include?(name)

          @own = @own.merge(name => factory).freeze
          @plans = {}.freeze
        end
        name
      end

      # Takes a tracer away that was registered. Traces that run keep theirs.
      #
      # @param name [Symbol, String]
      # @return [Boolean] whether there was one
      # @example
      #   Memprof::Tracers.unregister(:nothing) # => false
      def unregister(name)
        @lock.synchronize do
          known = @own.key?(name.to_sym)
          @own = @own.reject { |own, _| own == name.to_sym }.freeze
          @plans = {}.freeze
          known
        end
      end

      # @return [Array<Symbol>] all tracers, in the order of a report; those of the program come last
      # @example
      #   Memprof::Tracers.names.first(2) # => [:objects, :gc]
      def names = (ORDER & (native | CLIENTS.keys)) + @own.keys

      # In the child of a fork: traces that are ready are the parent's.
      #
      # @api private
      def after_fork
        @lock = Lock.new # its owner may be a thread that the child does not have
        @plans = {}.freeze
      end

      # @api private
      # @param names [Array<Symbol, String>, Symbol, String, nil] nil for all
      # @return [Array<Symbol>] in the order of a report
      # @raise [ArgumentError] if one is unknown; names those that there are
      def choose(names)
        return self.names if names.nil?
        return self.names - names.names if names.is_a?(Except)

        wanted = Array(names).map { |name| name.respond_to?(:to_sym) ? name.to_sym : name }
        unknown = wanted - self.names
        unless unknown.empty?
          raise ArgumentError,
            "unknown tracer #{unknown.first.inspect}; expected one of: #{self.names.join(", ")}"
        end

        self.names & wanted
      end

      # @api private
      # @param names (see #choose)
      # @param except (see #choose) those that are not wanted; nil for none
      # @return [Object, nil] what {plan} takes for names
      # @raise (see #choose)
      def without(names, except)
        return names if except.nil?
        return choose(names) - choose(except) unless names.nil?

        Except.new(choose(except).freeze).freeze
      end

      # @api private
      # @param names (see #choose)
      # @raise (see #choose)
      def plan(names)
        @plans[names] || begin
          plan = Plan.new(choose(names), native, CLIENTS, @own, asked: !(names.nil? || names.is_a?(Except)))
          # By the choice as it is now: an Array may be changed.
          @plans = @plans.merge((names.is_a?(Array) ? names.dup.freeze : names) => plan).freeze
          plan
        end
      end

      # @api private
      # @return [Array<Symbol>] tracers of the extension
      def native
        @native ||= Native::Trace.names.map(&:to_sym).freeze
      end

      private

      def check_factory(name, factory)
        raise ArgumentError, "tracer #{name}: #{factory.inspect} has no method new" unless
          factory.respond_to?(:new)
        return unless factory.respond_to?(:method_defined?)

        missing = %i[start finish report].reject { |method| factory.method_defined?(method) }
        raise ArgumentError, "tracer #{name} lacks #{missing.join(", ")}" unless missing.empty?
      end
    end
  end
end
