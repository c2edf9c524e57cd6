# frozen_string_literal: true

require_relative "../after_fork"
require_relative "../agent/notifications"
require_relative "../clock"
require_relative "slot_bytes"

module Memprof
  module Rails
    # The cost of one action or job. Ruby counts objects per process, so they and their bytes are known only
    # if no other action or job ran in the process at any time in between; otherwise they are nil. GC pauses
    # all threads, so its time is known wherever Ruby measures it.
    class Unit
      @lock = Mutex.new
      @running = {}.compare_by_identity

      class << self
        # `outer` is the one that this runs in, as a job that an action performs: both count its objects.
        def start(outer = nil)
          unit = new(outer)
          @lock.synchronize do
            others = @running.keys - unit.chain
            others.each(&:share)
            unit.share if others.any?
            @running[unit] = true
          end
          unit.begin
        end

        def ended(unit) = @lock.synchronize { @running.delete(unit) }

        # The units of the parent end in the parent.
        def after_fork
          @lock = Mutex.new
          @running = {}.compare_by_identity
        end
      end

      AfterFork.register(self)

      attr_reader :duration, :objects, :bytes, :gc_time, :sql

      def initialize(outer)
        @outer = outer
        @sql = 0
        @shared = false
      end

      def share = @shared = true

      # This unit and those that it runs in.
      def chain = [self, *@outer&.chain]

      def query
        @sql += 1
        @outer&.query
      end

      def begin
        @began = Clock.now
        @gc_began = gc_now
        @bytes_began = SlotBytes.total
        @objects_began = GC.stat(:total_allocated_objects)
        self
      end

      # Objects up to now, or nil if they are unknown.
      def so_far = @shared ? nil : GC.stat(:total_allocated_objects) - @objects_began

      def finish
        objects = GC.stat(:total_allocated_objects) - @objects_began
        bytes = @bytes_began && (SlotBytes.total - @bytes_began)
        @duration = Clock.now - @began
        @gc_time = gc_time_since(@gc_began)
        Unit.ended(self)
        return self if @shared

        @objects = objects
        @bytes = bytes
        self
      end

      # `sql` is nil if queries are not counted.
      def record(kind, name, sql:)
        amounts = { duration: duration, objects: objects, bytes: bytes, gc_time: gc_time, sql: sql }
        Agent::Work.record(kind: kind, name: name, **amounts)
        Agent::Notifications.publish(kind.name, name: name, **amounts)
      end

      private

      # Nanoseconds; nil if the program has switched GC.measure_total_time off.
      def gc_now = GC.measure_total_time ? GC.total_time : nil

      def gc_time_since(began)
        now = gc_now
        (now - began) / 1e9 if now && began
      end
    end
  end
end
