# frozen_string_literal: true

module Memprof
  class Trace
    # The report of a trace that the extension does not count. The extension counts by thread, and under a
    # Fiber scheduler one thread handles many requests, each of which waits while others run. Counts made in
    # Ruby are recorded by fiber and appear beside this.
    class Uncounted
      # The report of each tracer.
      ERROR = "not counted: under a Fiber scheduler requests share their thread"
      private_constant :ERROR

      def self.needed? = !Fiber.current_scheduler.nil?

      def initialize(plan)
        @plan = plan
        warn_of(plan.native) unless plan.native.empty?
      end

      def to_h
        @plan.names.to_h do |name|
          [name.name, @plan.native.include?(name.name) ? { "error" => ERROR } : {}]
        end
      end

      # Called by JSON.generate.
      def to_json(*state) = to_h.to_json(*state)

      private

      def warn_of(tracers)
        return if self.class.instance_variable_get(:@warned)

        self.class.instance_variable_set(:@warned, true)
        warn "memprof: traces go without #{tracers.join(", ")}, which are #{ERROR}; " \
             "scope: :process counts them for all together"
      end
    end
  end
end
