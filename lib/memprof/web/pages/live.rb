# frozen_string_literal: true

require_relative "../../source"

module Memprof
  class Web
    module Pages
      # A page about objects tracked by Memprof.start.
      class TrackingPage < LivePage
        private

        def places(file: nil)
          Native.quiet do
            places = Memprof.send(:session).stats.map do |count, path, line, class_name|
              { count: count, file: path, line: line, class: class_name }
            end
            places = of_files(places, file) if file
            places.sort_by { |row| [-row[:count], *row.values_at(:file, :line, :class).map(&:to_s)] }
          end
        end

        # Many places share a file, which is matched only once. Its path may be in any encoding.
        def of_files(places, part)
          chosen = Hash.new do |known, path|
            whole = Printable.utf8(path.to_s)
            known[path] = whole.include?(part) || Paths.short(whole).include?(part)
          end
          places.select { |place| chosen[place[:file]] }
        end
      end

      # `/live`: the running process, and actions on it. `file` selects tracked objects by a part of the path
      # of the file that allocated them, like `file ~` in a query.
      #
      # `/live.json?since=0` is what the page's script asks every two seconds: only what is new (see
      # {Web::Live::Feed}). Of a server's other workers, which `pid` does not mean, it gets no measurements.
      class Live < TrackingPage
        at "/live", menu: "Live", order: 5,
          assets: %w[vendor/uplot.css live.css filter.js vendor/uplot.js live_charts.js live.js]
        post "/live/tracking/start", :start_tracking
        post "/live/tracking/stop", :stop_tracking
        post "/live/tracking/clear", :clear_tracking
        post "/live/requests", :trace_requests
        post "/live/dumps", :take_dump
        post "/live/dumps/:number/delete", :delete_dump

        ROWS = 50 # of the table of places
        DONE = {
          started: "Tracking started in process %d.", already: "Tracking was already running in process %d.",
          stopped: "Tracking stopped in process %d.",
          idle: "Tracking was not running in process %d.",
          cleared: "Cleared the tracked objects of process %d; tracking continues.",
          tracing: "Process %d traces its next requests.",
          traced: "Tracing stopped in process %d.", deleted: "Deleted the dump (process %d)."
        }.freeze
        private_constant :ROWS, :DONE

        def title = "Process #{Process.pid}"

        def breadcrumbs = []

        def data
          { process: process, tracking: tracking, sites: live.feed.sites, dumps: dumps,
            unfinished: live.dumps.unfinished, requests: requests, done: sentence(DONE) }
        end

        def download
          Response.json(200, news) if text(:since)
        end

        def start_tracking(request)
          sample = field(request, "sample", 1, Memprof::Session::MAX_SAMPLE)
          stack = field(request, "stack", 1, Memprof::Session::MAX_STACK)
          done(Memprof.start(sample: sample, stack: stack) ? :started : :already)
        end

        def stop_tracking(_request) = done(Memprof.stop ? :stopped : :idle)

        # Forgets the objects so far, and continues tracking.
        def clear_tracking(_request)
          Memprof.send(:session).clear
          done(:cleared)
        rescue NotRunning
          done(:idle)
        end

        # Traces the next requests, or stops tracing.
        def trace_requests(request)
          unless request.form["stop"].nil?
            live.recorder.stop
            return done(:traced)
          end

          live.recorder.start(field(request, "count", 20, Web::Live::RequestRecorder::MOST))
          done(:tracing)
        end

        def take_dump(_request) = "/live/dumps/#{live.dumps.take}"

        def delete_dump(_request)
          number = captured_number(:number)
          live.dumps.find(number) || raise(NotFound, "no such dump")
          heaps.forget(number)
          live.dumps.delete(number)
          done(:deleted)
        end

        private

        def news
          number = integer(:since, 0, min: 0)
          return { pid: Process.pid, other: true } unless integer(:pid, Process.pid) == Process.pid

          { **live.feed.since(number), other: false }
        end

        def process
          {
            pid: Process.pid, parent: Process.ppid, program: $PROGRAM_NAME, ruby: RUBY_DESCRIPTION,
            memprof: VERSION, threads: Thread.list.size, rss: Memprof::Dump::ProcNotes.rss, gc: Web::Live.gc,
            types: (types if choice(:types, %w[yes no], "no") == "yes")
          }
        end

        def types
          counts = ObjectSpace.count_objects.except(:TOTAL, :FREE).reject { |_, count| count.zero? }
          counts.map { |type, count| { type: type.to_s.delete_prefix("T_").downcase, count: count } }
            .sort_by { |row| [-row[:count], row[:type]] }
        end

        def tracking
          page = number
          return { running: false } unless Memprof.running?

          rows = places(file: text(:file))
          {
            running: true, file: text(:file), objects: rows.sum { |row| row[:count] }, places: rows.size,
            page: page, each: ROWS, rows: rows_of_page(rows, ROWS)
          }
        rescue NotRunning
          { running: false } # stopped in between
        end

        def dumps = live.dumps.map(&:facts)

        def requests = live.recorder.state.merge(middleware: live.recorder.installed)
      end

      # `/live/source?file=app.rb&line=12`: the source around a place where tracked objects were allocated, in
      # its current state. No other files of the machine are shown.
      class LiveSource < TrackingPage
        at "/live/source"

        AROUND = 12 # lines shown before and after one
        private_constant :AROUND

        def title = "#{file}:#{line}"

        def data
          rows = places.select { |row| row[:file] == file && row[:line] == line }
          raise NotFound, "no live tracked object was allocated there" if rows.empty?

          {
            pid: Process.pid, file: file, line: line, lines: lines,
            objects: rows.map { |row| row.slice(:class, :count) }
          }
        rescue NotRunning
          raise NotFound, "tracking is not running in process #{Process.pid}"
        end

        private

        def file = text(:file) || raise(BadRequest, "file is missing")

        def line = integer(:line, 1, min: 0)

        def lines
          Source.lines(file, line, around: AROUND, any: true).to_a
            .map { |row| { number: row[:line], text: row[:text] } }
        end
      end

      # `/live/dumps/1732252245000`: waits for a dump, and redirects to its heap.
      class LiveDump < LivePage
        at "/live/dumps/:number"

        def redirect
          number = captured_number(:number)
          writing = live.dumps.writing(number)
          raise Opening, writing if writing
          return "/heaps/#{number}/" if live.dumps.find(number)

          raise live.dumps.failure(number) || NotFound.new("no such dump")
        end
      end
    end
  end
end
