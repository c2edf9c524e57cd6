# frozen_string_literal: true

require_relative "../after_fork"
require_relative "../printable"

module Memprof
  module Agent
    # Counts what each controller action and each job class has done in this process: runs, seconds, objects,
    # bytes, GC, queries. The number of names is bounded; further ones are counted as "other".
    #
    # @api private
    module Work
      KINDS = %i[action job].freeze
      # Names of each kind. The first ones are kept, so that no counter ever goes down.
      NAMES = 100
      OTHER = "other"
      # Characters of a name.
      LONGEST = 200
      AMOUNTS = %i[objects bytes gc_time sql].freeze
      private_constant :LONGEST, :AMOUNTS

      # Durations by size. Each bucket is 2^(1/4) times as wide as the one before, and its middle stands for
      # all of it, so a percentile is at most 9 % off, between 0.1 ms and an hour.
      class Durations
        PER_OCTAVE = 4
        SHORTEST = 1e-4
        BUCKETS = 101
        private_constant :PER_OCTAVE, :SHORTEST, :BUCKETS

        def initialize
          @buckets = Array.new(BUCKETS, 0)
          @count = 0
        end

        def initialize_copy(other)
          super
          @buckets = @buckets.dup
        end

        def add(seconds)
          @buckets[bucket(seconds)] += 1
          @count += 1
        end

        # The duration that this share of all does not exceed; nil without any.
        def percentile(share)
          return if @count.zero?

          rank = [(share * @count).ceil, 1].max
          found = @buckets.index { |count| (rank -= count) <= 0 }
          SHORTEST * 2**((found + 0.5) / PER_OCTAVE)
        end

        private

        def bucket(seconds)
          return 0 unless seconds > SHORTEST
          return BUCKETS - 1 if seconds.infinite?

          (Math.log2(seconds / SHORTEST) * PER_OCTAVE).floor.clamp(0, BUCKETS - 1)
        end
      end

      # One name: its number of runs, and sums. A sum is nil until a run has measured it. `counted` is the
      # number of runs whose objects are known, and so in the sum.
      class Row
        attr_reader :kind, :name, :count, :counted, :duration, *AMOUNTS

        def initialize(kind, name)
          @kind = kind
          @name = name
          @count = @counted = 0
          @duration = 0.0
          @durations = Durations.new
        end

        def initialize_copy(other)
          super
          @durations = @durations.dup
        end

        def add(duration, amounts)
          @count += 1
          @duration += duration
          @durations.add(duration)
          @counted += 1 if amounts[:objects]
          @objects = sum(@objects, amounts[:objects])
          @bytes = sum(@bytes, amounts[:bytes])
          @gc_time = sum(@gc_time, amounts[:gc_time])
          @sql = sum(@sql, amounts[:sql])
        end

        def percentile(share) = @durations.percentile(share)

        private

        def sum(known, more) = more.nil? ? known : (known || 0) + more
      end

      @lock = Mutex.new
      @rows = {}

      class << self
        # Adds one run. Amounts that were not measured are nil.
        #
        # @param kind [Symbol] `:action` or `:job`
        # @param name [String] as `"PagesController#show"`, or the class of the job
        # @param duration [Numeric] seconds
        # @param objects [Integer, nil] objects allocated
        # @param bytes [Integer, nil] bytes of their slots
        # @param gc_time [Numeric, nil] seconds
        # @param sql [Integer, nil] number of queries
        # @return [nil]
        def record(kind:, name:, duration:, objects: nil, bytes: nil, gc_time: nil, sql: nil)
          unless KINDS.include?(kind)
            raise ArgumentError, "invalid kind #{kind.inspect}; expected :action or :job"
          end

          amounts = { objects: objects, bytes: bytes, gc_time: gc_time, sql: sql }
          @lock.synchronize { row(kind, name).add([duration.to_f, 0.0].max, amounts) }
          nil
        end

        # Copies of all rows of a kind, those that took most time first.
        def rows(kind)
          rows = @lock.synchronize { @rows[kind].to_h.values.map(&:dup) }
          rows.sort_by { |row| [-row.duration, row.name] }
        end

        def clear
          @lock.synchronize { @rows = {} }
          nil
        end

        # The counts so far are the parent's.
        def after_fork
          @lock = Mutex.new
          @rows = {}
        end

        private

        # A known name, also of the caller's own encoding, is found without a copy of it.
        def row(kind, name)
          rows = @rows[kind] ||= {}
          rows[name] || begin
            name = Printable.utf8(name.to_s)[0, LONGEST]
            name = OTHER if rows.size >= NAMES && !rows.key?(name)
            rows[name] ||= Row.new(kind, name.freeze)
          end
        end
      end

      AfterFork.register(self)
    end
  end
end
