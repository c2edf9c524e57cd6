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
  # The tracers of {Memprof.trace}: each counts one kind of work and returns a Hash of numbers. The extension
  # contains those of the VM and of C libraries; those of client gems are here, one per file; and a program
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
    # The order of a report: the most time-consuming parts of a request first.
    ORDER = %i[objects gc fd dns memory views sql mysql postgres sqlite memcache redis http resources
      threads].freeze
    # Client gem tracers, by name.
    CLIENTS = {
      fd: Fd, views: Views, sql: Sql, mysql: Mysql, memcache: Memcache, redis: Redis, http: Http
    }.freeze
    private_constant :ORDER, :CLIENTS

    # All tracers except some.
    Except = Struct.new(:names)
    private_constant :Except

    @own = {}.freeze
    @plans = {}.freeze
    @lock = Lock.new

    class << self
      # Adds a tracer. Each trace creates an instance; `start` is called before the block, `finish` after it
      # on the same thread, and then `report`, which returns a Hash for the report. An exception from any of
      # them appears there as `"error"`.
      #
      # @param name [Symbol, String] its key in the report
      # @param factory [#new, nil] creates the instance, as a class does; without it, the block is the body of
      #   a class
      # @yield the body of a class with the methods `start`, `finish` and `report`
      # @return [Symbol] the name
      # @raise [ArgumentError] if the tracer exists, or a method is missing
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
        raise ArgumentError, "expected a class or a block, not both" if factory && body

        factory ||= Class.new(&body)
        check_factory(name, factory)
        @lock.synchronize do
          raise ArgumentError, "tracer #{name} exists already" if names.include?(name)

          @own = @own.merge(name => factory).freeze
          @plans = {}.freeze
        end
        name
      end

      # Removes a registered tracer. Running traces keep theirs.
      #
      # @param name [Symbol, String]
      # @return [Boolean] whether it existed
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

      # In the child of a fork: prepared traces are the parent's.
      #
      # @api private
      def after_fork
        @lock = Lock.new # its owner may be a thread that the child does not have
        @plans = {}.freeze
      end

      # @api private
      # @param names [Array<Symbol, String>, Symbol, String, nil] nil for all
      # @return [Array<Symbol>] in the order of a report
      # @raise [ArgumentError] if one is unknown; lists the known ones
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
      # @param except (see #choose) tracers to leave out; nil for none
      # @return [Object, nil] the names for {plan}
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
          # Keyed by a copy: the caller may modify the Array.
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
