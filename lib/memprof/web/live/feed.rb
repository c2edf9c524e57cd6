# frozen_string_literal: true

require_relative "../../clock"
require_relative "../records/traces"
require_relative "sites"
require_relative "sparing"

module Memprof
  class Web
    class Live
      # What is new in this process since a page last asked. It needs no thread: a page's request measures, at
      # most once a second, and all pages share the bounded history. Each new part gets the next number, so
      # one number says what a page knows.
      #
      # A sample costs microseconds. What walks the heap or reads large files is asked as {Sparing} permits.
      class Feed
        EVERY = 1.0 # seconds between two samples
        SAMPLES = 300
        LEDGERS = 100
        REQUESTS = 50
        ROWS = 25 # of the table of sites
        WORK = 20 # of the table of actions and jobs
        SAMPLED = %i[live old allocated seconds].freeze
        NONE = { source: nil, collections: nil, sites: 0, bytes: 0, objects: 0, rows: [] }.freeze
        private_constant :EVERY, :SAMPLES, :LEDGERS, :REQUESTS, :ROWS, :WORK, :SAMPLED, :NONE

        def initialize(dumps:, recorder:, clock: Clock)
          @dumps = dumps
          @recorder = recorder
          @clock = clock
          @lock = Mutex.new
          begin_anew
        end

        # Everything after this number, and the number for the next request. Unchanged facts are nil.
        def since(number)
          @lock.synchronize do
            check_process
            look
            number = 0 if number > @number
            news(number)
          end
        end

        # Sites by live bytes.
        def sites
          @lock.synchronize do
            check_process
            look_at_sites
            @facts.fetch(:sites).last
          end
        end

        private

        # A forked child starts its own history.
        def check_process
          begin_anew unless @pid == Process.pid
        end

        def begin_anew
          @pid = Process.pid
          @number = 0
          @samples = []
          @ledgers = []
          @requests = []
          @facts = {}
          @round = @traced = 0
          @stat = {}
          @turns = { samples: EVERY, ledgers: 2.0, sites: 2.0, dumps: 1.0, work: 2.0 }
            .transform_values { |seconds| Sparing.new(least: seconds, clock: @clock) }
        end

        def look
          sample = @turns[:samples].ask { measure } and add(@samples, SAMPLES, sample)
          ledger = @turns[:ledgers].ask { memory } and add(@ledgers, LEDGERS, ledger)
          look_at_sites
          look_at_requests
          dumps = @turns[:dumps].ask { { complete: @dumps.map(&:facts), unfinished: @dumps.unfinished } }
          note(:dumps, dumps) if dumps
          work = @turns[:work].ask { worked } and note(:work, work)
        end

        def news(number)
          facts = %i[sites tracing dumps work].to_h do |name|
            noted, value = @facts[name]
            [name, (value if noted && noted > number)]
          end
          { pid: @pid, number: @number, gc: @gc, samples: newer(@samples, number),
            memory: newer(@ledgers, number), requests: newer(@requests, number), **facts }
        end

        def newer(rows, number)
          index = rows.bsearch_index { |row| row[:number] > number }
          index ? rows.drop(index) : []
        end

        def add(rows, most, row)
          rows << { number: @number += 1, **row }
          rows.shift if rows.size > most
        end

        def note(name, value)
          return if @facts.key?(name) && @facts[name].last == value

          @facts[name] = [@number += 1, value]
        end

        # Counters since the start of the process.
        def measure
          GC.stat(@stat)
          @gc = Live.gc(@stat)
          { at: milliseconds, rss: Memprof::Dump::ProcNotes.rss, **@gc.slice(*SAMPLED) }
        end

        def memory
          ledger = Memprof.memory
          { at: milliseconds, rss: ledger.rss,
            items: ledger.items.map { |item| { key: item.key, name: item.name, bytes: item.bytes } } }
        rescue Memprof::Error
          nil # without /proc
        end

        def look_at_sites
          return look_at_tracking if Memprof.running?

          @tracked = nil
          interval = last_interval
          return note(:sites, NONE) unless interval

          note(:sites, Sites.of_agent(interval, ROWS)) unless @interval.equal?(interval) && agent?
          @interval = interval
        rescue NotRunning
          note(:sites, NONE) # stopped in between
        end

        def last_interval = (Memprof::Agent.intervals.last if defined?(Memprof::Agent.intervals))

        def agent? = @facts[:sites]&.last&.fetch(:source) == :agent

        # After each GC, as only then what lives can be told from garbage.
        def look_at_tracking
          session = Memprof.send(:session).id
          @turns[:sites].renew unless @tracked&.first == session
          return if @tracked == [session, GC.count]

          @turns[:sites].ask do
            found = Sites.tracked(ROWS, last_interval)
            @tracked = [session, found[:collections]]
            note(:sites, found)
          end
        end

        def look_at_requests
          note(:tracing, @recorder.state)
          round, records = @recorder.since(@round, @traced)
          @requests.clear && @traced = 0 if round != @round
          @round = round
          return if records.empty?

          ended(records).each { |row| add(@requests, REQUESTS, row) }
          @traced += records.size
        end

        # Their numbers are those of /live/requests/NUMBER.
        def ended(records)
          rows = Records::Traces.parse(records.map { |record| Memprof::Trace::Journal.json(record) }.join)
            .worst("time")[:requests].sort_by { |row| row[:line] }
          rows.last(REQUESTS).map do |row|
            { position: @traced + row[:line], action: row[:action], status: row[:status],
              start: Records::Traces.stamp(row[:start]), **row[:costs].slice(:time, :objects, :gc) }
          end
        end

        # What actions and jobs cost, where they are counted.
        def worked
          return [] unless defined?(Memprof::Agent::Work) && !Memprof::Agent.autoload?(:Work)

          rows = Memprof::Agent::Work::KINDS.flat_map { |kind| Memprof::Agent::Work.rows(kind) }
          rows.max_by(WORK, &:duration).map do |row|
            { kind: row.kind, name: row.name, runs: row.count, time: row.duration / row.count,
              objects: row.objects && row.objects / row.counted }
          end
        end

        def milliseconds = Process.clock_gettime(Process::CLOCK_REALTIME, :millisecond)
      end
    end
  end
end
