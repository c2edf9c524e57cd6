# frozen_string_literal: true

module Memprof
  class Web
    module Pages
      # `/live/memory`: where the memory of the process and of its server goes, and which lines call malloc.
      # `location` chooses those whose names contain it.
      class LiveMemory < LivePage
        at "/live/memory"
        post "/live/malloc/start", :start
        post "/live/malloc/stop", :stop
        post "/live/malloc/reset", :reset

        EACH = 50
        SORT = %w[live blocks allocated calls frees mean_life max_life].freeze
        # What was done, in words.
        DONE = {
          recording: "Process %d records malloc.", already: "Process %d recorded malloc already.",
          stopped: "Process %d has stopped recording malloc.", idle: "Process %d did not record malloc.",
          reset: "The counts of process %d start from zero; live blocks stay known.",
          unsupported: "Malloc cannot be recorded in process %d: see docs/malloc.md, Limits."
        }.freeze
        private_constant :EACH, :DONE

        def title = "Memory of process #{Process.pid}"

        def data
          rows = Web::Live::MallocRecording.rows(sort.to_sym, part: text(:location))
          memory = measured { Memprof.memory }
          {
            pid: Process.pid, ledger: memory&.to_h, cluster: cluster(memory),
            heap_pages: Web::Live::MallocRecording.heap_pages, done: sentence(DONE),
            recording: Malloc.running?, sample: Malloc.sample, location: text(:location),
            live: rows.sum { |row| row[:live] }, locations: rows.size, page: number, each: EACH,
            rows: rows_of_page(rows, EACH)
          }
        end

        def sort = choice(:sort, SORT, "live")

        # Records malloc.
        def start(_request)
          done(Malloc.start ? :recording : :already)
        rescue Unsupported
          done(:unsupported)
        end

        def stop(_request) = done(Malloc.stop ? :stopped : :idle)

        # Counts from zero.
        def reset(_request)
          Malloc.reset
          done(:reset)
        end

        private

        # Nothing without /proc.
        def measured(&block)
          Malloc.quiet(&block)
        rescue Memprof::Error
          nil
        end

        # Of the server that this process is a worker of; nil if there is only this one.
        def cluster(memory)
          found = measured { Memory::Cluster.of(nil) { |pid| memory if pid == Process.pid } }
          found.to_h if found && found.processes.size > 1
        end
      end

      # `/live/malloc?location=app.rb:12`: live blocks of a location.
      class LiveMalloc < LivePage
        at "/live/malloc"

        MOST = 1000
        private_constant :MOST

        def title = "Live blocks of #{location}"

        def breadcrumbs = [*super, ["Memory", "/live/memory"]]

        def data
          rows = Web::Live::MallocRecording.blocks(location)
          { pid: Process.pid, location: location, sample: Malloc.sample,
            count: rows.sum { |row| row[:count] }, bytes: rows.sum { |row| row[:bytes] },
            more: [rows.size - MOST, 0].max, rows: rows.first(MOST), generation: GC.count }
        end

        private

        def location = text(:location) || raise(BadRequest, "location is missing")
      end
    end
  end
end
