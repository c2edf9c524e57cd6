# frozen_string_literal: true

require_relative "../after_fork"
require_relative "../clock"

module Memprof
  module Agent
    # Samples the objects that the whole process allocates, and which of them are alive, for {Agent}. The work
    # is done in Rust, see ext/memprof/src/vm/agent/.
    #
    # @api private
    module Sampler
      # Objects of each kind by which the VM's answers are checked.
      PROBES = 64
      MAX_STACK = 512
      COUNTS = { minor: :minor_gc_count, major: :major_gc_count }.freeze
      private_constant :PROBES, :MAX_STACK, :COUNTS

      class << self
        # Starts sampling during `share` of the time, or less if that costs more than half of `budget`, a
        # share of the program's CPU time: the rest is for ending intervals. Returns false if it is already
        # running.
        def start(share: 0.01, stack: 64, budget: 0.01)
          check_options(share, stack)
          Support.check
          return false if running?

          begin
            Native::Agent.start(share, stack, budget / 2.0)
          rescue RuntimeError => e
            raise Unsupported, "this Ruby was not checked: #{e.message}"
          end
          verify
          AfterFork.register(self)
          @counts = counts
          true
        end

        def stop = Native::Agent.stop

        def running? = Native::Agent.running?

        # Ends the current interval and begins the next one. Returns its report and a Hash of facts.
        def interval
          raise Error, "memprof failed inside the VM's hook; the agent has stopped" if Native::Agent.broken?

          profile, numbers, errors, ages =
            Native::Agent.interval(VERSION, RUBY_DESCRIPTION, Printable.utf8($PROGRAM_NAME))
          raise NotRunning, "the agent's sampler is not running" unless profile

          Native.quiet { [Report.new(profile), facts(numbers).merge(errors: errors, ages: ages)] }
        end

        # The child of a fork has the samples of its parent, but not the thread that draws the bursts.
        def after_fork = Native::Agent.after_fork
        alias_method :after_daemon, :after_fork

        private

        def check_options(share, stack)
          unless share.is_a?(Numeric) && share.positive? && share <= 0.5
            raise ArgumentError, "share must be a number above 0, up to 0.5 (got #{share.inspect})"
          end
          return if stack.is_a?(Integer) && stack.between?(1, MAX_STACK)

          raise ArgumentError, "stack must be 1 to #{MAX_STACK} (got #{stack.inspect})"
        end

        # Checks once, on real objects, that the VM says rightly which of them a GC has marked.
        def verify
          return if Native::Agent.verified?

          if Native::Agent.verified?.nil?
            kept = Array.new(PROBES) { Object.new }
            Native::Agent.expect(kept, Array.new(PROBES) { Object.new })
            Native.clear_stack
            GC.start(full_mark: false, immediate_sweep: false)
            return if Native::Agent.check && kept
          end
          stop
          raise Unsupported, "this Ruby was not checked: it does not say which objects a GC has marked"
        end

        def facts((started_at, duration, gc_time, samples, live, dropped, cpu, memory))
          before = @counts
          @counts = counts
          gc = @counts.to_h { |kind, count| [kind, count - before[kind]] }
          {
            started_at: started_at, duration: duration, gc: { **gc, time: gc_time }, samples: samples,
            live_samples: live, dropped: dropped, cost: { cpu: cpu, memory: memory }
          }
        end

        def counts = COUNTS.transform_values { |key| GC.stat(key) }
      end
    end
    private_constant :Sampler
  end
end
