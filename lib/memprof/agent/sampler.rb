# frozen_string_literal: true

module Memprof
  module Agent
    # Samples the objects that the whole process allocates, and which of them are alive, for {Agent}.
    #
    # @api private
    module Sampler
      @session = nil

      class << self
        def start(share: 0.01, stack: 64, malloc: 512 * 1024)
          return false if @session

          @session = Session.prepare(sample: 1000, stack: stack)
          @session.open
          @facts = { started_at: Time.now.to_f, began: Clock.now, gc: gc }
          true
        end

        def stop
          return false unless @session

          @session.close
          @session = nil
          true
        end

        def running? = !@session.nil?

        def interval
          raise NotRunning, "the agent's sampler is not running" unless @session

          report = @session.report
          [report, facts(report)].tap { @facts = { started_at: Time.now.to_f, began: Clock.now, gc: gc } }
        end

        private

        def facts(report)
          now = gc
          sites = report.sites.size
          {
            started_at: @facts[:started_at], duration: Clock.now - @facts[:began],
            gc: now.to_h { |key, value| [key, value - @facts[:gc][key]] },
            samples: report.total_allocated / 1000, live_samples: report.total_retained / 1000, dropped: 0,
            cost: { cpu: 0.0, memory: Native.memsize }, malloc: nil,
            errors: Array.new(sites) { [0.0, 0.0, 0.0, 0.0] }, ages: Array.new(sites) { [0.0, 0.0] }
          }
        end

        def gc = { minor: GC.stat(:minor_gc_count), major: GC.stat(:major_gc_count), time: GC.stat(:time) / 1000.0 }
      end
    end
    private_constant :Sampler
  end
end
