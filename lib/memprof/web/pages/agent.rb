# frozen_string_literal: true

module Memprof
  class Web
    module Pages
      # `/live/agent`: what the agent of this process has measured, interval by interval, and where memory was
      # allocated that is live now.
      class Agent < LivePage
        at "/live/agent"

        ROWS = 20
        private_constant :ROWS

        def title = "Agent of process #{Process.pid}"

        def data
          intervals = loaded? ? Memprof::Agent.intervals : []
          Native.quiet do
            {
              pid: Process.pid, running: loaded? && Memprof::Agent.running?,
              labels: loaded? ? Memprof::Agent.labels : {},
              intervals: intervals.map { |interval| row(interval) },
              live: live_sites(intervals.last), allocating: allocating(intervals.last),
              leaks: loaded? ? Memprof::Agent.leaks.map { |leak| leak(leak) } : [],
              cost: cost(intervals), gc: gc(intervals)
            }
          end
        end

        private

        # Nothing of the agent is loaded to say that there is none.
        def loaded? = defined?(Memprof::Agent.intervals) ? true : false

        def row(interval)
          report = interval.report
          {
            started_at: interval.started_at.to_f, duration: interval.duration, rss: interval.to_h[:rss],
            allocated: { objects: report.total_allocated, bytes: report.total_allocated_memsize },
            live: { objects: report.total_retained, bytes: report.total_retained_memsize },
            gc: interval.gc, cpu: interval.cost[:cpu]
          }
        end

        def live_sites(interval) = interval ? Web::Live::Sites.rows(interval, ROWS) : []

        def allocating(interval)
          return [] unless interval

          interval.report.places(:allocated, limit: ROWS).last.map do |site|
            { **place(site), allocated: site.allocated_bytes, count: site.allocated_objects }
          end
        end

        def place(site)
          { file: site.file, line: site.line, method: site.method_name, class: site.class_name }
        end

        def leak(leak)
          { file: leak.file, line: leak.line, class: leak.class_name, per_hour: leak.bytes_per_hour.round,
            text: leak.to_s }
        end

        # The share of the CPU, and bytes; nil without an interval.
        def cost(intervals)
          return if intervals.empty?

          seconds = intervals.sum(&:duration)
          cpu = intervals.sum { |interval| interval.cost[:cpu].to_f }
          { percent: seconds.positive? ? 100.0 * cpu / seconds : nil, memory: intervals.last.cost[:memory] }
        end

        def gc(intervals)
          return if intervals.empty?

          seconds = intervals.sum(&:duration)
          totals = %i[minor major time].to_h { |key|
            [key, intervals.sum { |interval|
                    interval.gc[key] || 0
                  }]
          }
          totals.merge(percent: seconds.positive? ? 100.0 * totals[:time] / seconds : nil)
        end
      end
    end
  end
end
