# frozen_string_literal: true

require "etc"
require_relative "../clock"
require_relative "../units"
require_relative "cgroup"

module Memprof
  module Agent
    # Whether memory has reached what the settings `limit` and `pressure` say; once in a cool-down.
    class Limits
      STATM = "/proc/self/statm"
      PAGE = 4096
      private_constant :STATM, :PAGE

      def initialize(settings, cgroup: Cgroup.new, clock: Clock, statm: STATM)
        @limit = settings[:limit]
        @pressure = settings[:pressure]
        @cooldown = settings[:cooldown]
        @cgroup = cgroup
        @clock = clock
        @statm = statm
        @reached_at = nil
      end

      def watched? = !(@limit || @pressure).nil?

      # Why a setting has no effect here, for the log; nil if each has.
      def problem
        return "limit is not watched: no cgroup of this process has a memory limit" if
          @limit.is_a?(Rational) && @cgroup.state.nil?
        return "limit is not watched: RSS is unknown on this system" if @limit.is_a?(Integer) && resident.nil?

        "pressure is not watched: this system has no PSI" if @pressure && @cgroup.pressure.nil?
      end

      # A sentence about the limit that was reached, or nil. The next one comes after the cool-down.
      def reached
        return unless watched? && (@reached_at.nil? || @clock.now - @reached_at >= @cooldown)

        reason = over_limit || over_pressure or return
        @reached_at = @clock.now
        reason
      end

      # Bytes that processes of the cgroup can still allocate; nil without a limit.
      def free = @cgroup.state&.free

      # Resident bytes of this process; nil if unknown. Reads one short file.
      def resident
        pages = File.read(@statm).split[1] and pages.to_i * page_size
      rescue SystemCallError
        nil
      end

      private

      def page_size = @page_size ||= Etc.sysconf(Etc::SC_PAGESIZE) || PAGE

      def over_limit
        case @limit
        when Integer
          used = resident
          "RSS is #{Units.bytes(used)}, of #{Units.bytes(@limit)}" if used && used >= @limit
        when Rational
          state = @cgroup.state
          return unless state && state.share >= @limit

          "the cgroup uses #{Units.bytes(state.used)} of #{Units.bytes(state.limit)} " \
            "(#{(state.share * 100).floor} %)"
        end
      end

      def over_pressure
        waited = @cgroup.pressure if @pressure
        "memory pressure is #{waited} % (some avg10)" if waited && waited >= @pressure
      end
    end
  end
end
