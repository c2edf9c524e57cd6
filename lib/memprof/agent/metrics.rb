# frozen_string_literal: true

require_relative "../clock"
require_relative "../native"
require_relative "../paths"
require_relative "../printable"
require_relative "../version"
require_relative "exposition"
require_relative "totals"
require_relative "work"

module Memprof
  module Agent
    # The numbers that `/metrics` shows. How many series there are is bounded, whatever the program does.
    #
    # @api private
    class Metrics
      # Sites, and leaks, that are told apart; the rest is "other".
      SITES = 20
      # Characters of a label.
      LONGEST = 200
      # Seconds for which the text is valid: all who ask meanwhile get the same String.
      FRESH = 1
      QUANTILES = [0.5, 0.95, 0.99].freeze
      WORK = {
        counted: ["counted", "runs", "runs whose objects were counted, as no other ran at the same time"],
        objects: ["allocated_objects", "objects", "objects allocated by the counted runs"],
        bytes: ["allocated_bytes", "bytes", "bytes of their slots, without memory by malloc"],
        gc_time: ["gc_seconds", "seconds", "GC time, where it was measured"],
        sql: ["sql_queries", "queries", "SQL queries, where they were counted"]
      }.freeze
      private_constant :LONGEST, :FRESH, :QUANTILES, :WORK

      def initialize(totals = Totals.shared, clock: Clock)
        @totals = totals
        @clock = clock
        @lock = Mutex.new
        @texts = {}
      end

      # The metrics as text in a format of Exposition.
      def text(format)
        @lock.synchronize do
          text, time, pid = @texts[format]
          return text if text && @clock.now - time < FRESH && pid == Process.pid

          text = Exposition.text(families, format).freeze
          @texts[format] = [text, @clock.now, Process.pid]
          text
        end
      end

      # All that is known now; what is unknown is absent.
      def families
        @sums, @interval = @totals.read
        @common = { "worker" => label(Agent.labels[:worker]) }
        [info, *process, *garbage, *allocations, *sites, *own, *leaks, *work(:action), *work(:job)]
          .reject { |family| family.samples.empty? }
      end

      private

      def info
        labels = Agent.labels.compact.to_h { |name, value| [name.to_s, label(value)] }
        Exposition::Family.new("memprof_agent", :info, nil, "The process that the agent profiles.",
          [["", labels.merge("memprof" => VERSION, "ruby" => RUBY_VERSION), 1]])
      end

      def process
        parts = @interval&.memory&.items.to_a.map { |item| [{ "part" => item.key.to_s }, item.bytes] }
        [
          gauge("resident_memory_bytes", "bytes", "Resident memory of the process.", resident),
          gauge("memory_part_bytes", "bytes", "Parts of the resident memory, which add up to it.", parts),
          gauge("live_slots", "slots", "Slots of Ruby's heap with an object, live or not yet collected.",
            GC.stat[:heap_live_slots])
        ]
      end

      def garbage
        stat = GC.stat
        time = GC.total_time / 1e9 if GC.measure_total_time
        runs = %i[minor major].map { |kind| [{ "kind" => kind.to_s }, stat[:"#{kind}_gc_count"]] }
        [
          counter("gc_runs", "runs", "Garbage collections.", runs),
          counter("gc_seconds", "seconds", "Time spent in garbage collection.", time)
        ]
      end

      # The VM counts objects; their bytes are an estimate of the agent.
      def allocations
        bytes = @sums.allocated_bytes if @interval
        [
          counter("allocated_objects", "objects", "Objects allocated.", GC.stat[:total_allocated_objects]),
          counter("allocated_bytes", "bytes",
            "Bytes of objects allocated since the agent started (estimate).", bytes)
        ]
      end

      def sites
        return [] unless @interval

        [gauge("site_live_bytes", "bytes",
          "Bytes of live objects by the line that allocated them and their class (estimate).", live)]
      end

      def live
        report = @interval.report
        _, sites = report.places(:retained, limit: SITES)
        rows = Hash.new(0)
        sites.each { |site| rows[[place(site), label(site.class_name)]] += site.retained_bytes }
        rest = report.total_retained_memsize - rows.values.sum
        rows[%w[other other]] += rest if rest.positive?
        rows.map { |(site, class_name), bytes| [{ "site" => site, "class" => class_name }, bytes] }
      end

      def own
        return [] unless @interval

        [
          counter("agent_cpu_seconds", "seconds", "CPU time that the agent used.", @sums.cpu),
          gauge("agent_memory_bytes", "bytes", "Memory of the agent.", @interval.cost[:memory]),
          counter("agent_intervals", "intervals", "Intervals that the agent has measured.", @sums.intervals),
          gauge("agent_interval_end_seconds", "seconds", "When the last interval ended, since 1970.",
            (@interval.started_at + @interval.duration).to_f)
        ]
      end

      # One leak may be known in several releases: the label has the line and the class only.
      def leaks
        leaks = Agent.leaks.sort_by { |leak| -leak.bytes_per_hour }
        rows = Hash.new(0.0)
        leaks.each_with_index do |leak, index|
          key = index < SITES ? [place(leak), label(leak.class_name)] : %w[other other]
          rows[key] += leak.bytes_per_hour
        end
        rows = rows.map { |(site, name), bytes| [{ "site" => site, "class" => name }, bytes] }
        [
          gauge("leaks", "leaks", "Sites that leak.", leaks.size),
          gauge("leak_bytes_per_hour", nil, "Growth of the sites that leak.", rows)
        ]
      end

      # Runs of each action, or of each class of jobs.
      def work(kind)
        rows = Work.rows(kind)
        what = kind == :action ? "controller action" : "job class"
        durations = rows.flat_map { |row| summary(kind.to_s, row) }
        seconds = Exposition::Family.new("memprof_#{kind}_duration_seconds", :summary, "seconds",
          "Time by #{what} since the process started; quantiles are within 9 %.", durations)
        [seconds, *WORK.map do |amount, (name, unit, sentence)|
          known = rows.reject { |row| row.public_send(amount).nil? }
          values = known.map { |row| [{ kind.to_s => label(row.name) }, row.public_send(amount)] }
          counter("#{kind}_#{name}", unit, "By #{what}: #{sentence}.", values)
        end]
      end

      def summary(kind, row)
        labels = { kind => label(row.name), **@common }
        quantiles = QUANTILES.map do |quantile|
          ["", labels.merge("quantile" => quantile.to_s), row.percentile(quantile)]
        end
        [*quantiles, ["_count", labels, row.count], ["_sum", labels, row.duration]]
      end

      def gauge(name, unit, help, values) = family(name, :gauge, unit, help, values)
      def counter(name, unit, help, values) = family(name, :counter, unit, help, values)

      # `values` is one number, nil, or an Array of labels and number.
      def family(name, type, unit, help, values)
        values = values.nil? ? [] : [[{}, values]] unless values.is_a?(Array)
        samples = values.reject { |_, value| value.nil? }
          .map { |labels, value| ["", labels.merge(@common), value] }
        Exposition::Family.new("memprof_#{name}", type, unit, help, samples)
      end

      def place(site) = label(Paths.short_location(site))

      def label(text)
        text = Printable.utf8(text.to_s)
        text.length > LONGEST ? "...#{text[(3 - LONGEST)..]}" : text
      end

      # Nil without /proc.
      def resident
        kilobytes, = Native.process_sizes
        kilobytes && (kilobytes * 1024)
      end
    end
  end
end
