# frozen_string_literal: true

require_relative "../after_fork"
require_relative "../native"

module Memprof
  module Agent
    # What the agent has measured since it started: sums of its intervals, in bounded memory. Scrapers expect
    # counters that only go up; intervals are dropped after a while.
    #
    # @api private
    class Totals
      # Sites that are told apart; the rest is one site.
      SITES = 20_000
      LOCK = Mutex.new
      private_constant :LOCK

      # The sums so far. `allocated_bytes` are estimated, `cpu` is what the agent used.
      Sums = Struct.new(:allocated_objects, :allocated_bytes, :cpu, :intervals)

      class << self
        # That of this process. It begins with the intervals that the agent still has.
        def shared = @shared || LOCK.synchronize { @shared ||= new.tap(&:subscribe) }

        # The parent's sums are not those of the child.
        def after_fork
          @shared&.after_fork
        end
      end

      AfterFork.register(self)

      def initialize(sites: SITES)
        @sites = sites
        clear
      end

      # Adds each further interval of the agent.
      def subscribe
        # The agent's thread waits until the earlier ones are added.
        @lock.synchronize do
          @subscription = Agent.subscribe { |interval| add(interval) }
          known = Agent.intervals
          known.each { |interval| sum_up(interval) }
          @known = known.last
        end
      end

      def unsubscribe = @subscription&.unsubscribe

      def add(interval)
        @lock.synchronize { sum_up(interval) unless interval.equal?(@known) }
      end

      # The sums, and the last interval: nil before the first one.
      def read = @lock.synchronize { [@sums.dup, @last] }

      # All allocations so far, and what is alive now, as a Native::Profile; nil before the first interval.
      def profile = @lock.synchronize { @profile }

      # The profile in pprof's format. All who ask for it before the next interval get the same String.
      def pprof(default_type)
        @lock.synchronize do
          @profile && (@encoded[default_type] ||= encode(@profile, default_type, nil))
        end
      end

      # The difference to an earlier profile; `earlier` is nil if there was none yet.
      def difference(default_type, earlier)
        now = profile or return
        encode(now, default_type, earlier)
      end

      def after_fork = clear

      private

      def clear
        @lock = Mutex.new
        @sums = Sums.new(0, 0, 0.0, 0)
        @profile = @last = @known = nil
        @encoded = {}
      end

      def sum_up(interval)
        profile = interval.report.profile
        @profile = @profile ? @profile.add(profile, @sites) : profile.bounded(@sites)
        @encoded = {}
        @last = interval
        @sums.allocated_objects += interval.report.total_allocated
        @sums.allocated_bytes += interval.report.total_allocated_memsize
        @sums.cpu += interval.cost[:cpu].to_f
        @sums.intervals += 1
      end

      def encode(profile, default_type, earlier)
        labels = Agent.labels.compact.map { |name, value| "#{name}=#{Printable.line(value)}" }
        profile.served_pprof(default_type, earlier, labels).freeze
      end
    end
  end
end
