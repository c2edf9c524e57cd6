# frozen_string_literal: true

module Memprof
  class Web
    module Pages
      # `/live/memory`: where the memory of the process and of its server goes, and which lines call malloc.
      # `location` selects lines by a part of their names.
      class LiveMemory < LivePage
        at "/live/memory"
        post "/live/malloc/start", :start
        post "/live/malloc/stop", :stop
        post "/live/malloc/reset", :reset

        EACH = 50
        SORT = %w[live blocks allocated calls frees mean_life max_life].freeze
        DONE = {
          recording: "Process %d records malloc.", already: "Process %d recorded malloc already.",
          stopped: "Process %d has stopped recording malloc.", idle: "Process %d did not record malloc.",
          reset: "The counts of process %d start from zero; live blocks stay known.",
          unsupported: "Malloc cannot be recorded in process %d: see docs/malloc.md, Limits."
        }.freeze
        private_constant :EACH, :DONE

        def title = "Memory of process #{Process.pid}"

        def data
          rows = locations(sort.to_sym, text(:location))
          memory = measured { Memprof.memory }
          {
            pid: Process.pid, ledger: memory&.to_h, cluster: cluster(memory),
            heap_pages: heap_pages, done: sentence(DONE),
            recording: Malloc.running?, sample: Malloc.sample, location: text(:location),
            live: rows.sum { |row| row[:live] }, locations: rows.size, page: number, each: EACH,
            rows: rows_of_page(rows, EACH)
          }
        end

        def sort = choice(:sort, SORT, "live")

        def start(_request)
          done(Malloc.start ? :recording : :already)
        rescue Unsupported
          done(:unsupported)
        end

        def stop(_request) = done(Malloc.stop ? :stopped : :idle)

        def reset(_request)
          Malloc.reset
          done(:reset)
        end

        private

        # Locations, largest first.
        def locations(sort, part)
          Malloc.quiet do
            rows = Native::Malloc.sites.map { |name, counts| row(Printable.utf8(name), *counts) }
            rows.select! { |row| row[:location].include?(part) } if part
            rows.sort_by { |row| [-row[sort], row[:location]] }
          end
        end

        def row(location, calls, allocated, frees, _freed, age_total, max_life, blocks, live)
          mean = frees.zero? ? 0.0 : age_total / frees.to_f
          { location: location, live: live, blocks: blocks, allocated: allocated, calls: calls, frees: frees,
            mean_life: mean.round(1), max_life: max_life }
        end

        # Pages of Ruby's heap, by slot size.
        def heap_pages
          Malloc.heap_pages.group_by(&:slot_size).sort.map do |slot_size, pages|
            slots, used = %i[slots used].map { |name| pages.sum(&name) }
            { slot_size: slot_size, pages: pages.size, slots: slots, used: used,
              percent: used * 100.0 / slots }
          end
        end

        # Returns nil without /proc.
        def measured(&block)
          Malloc.quiet(&block)
        rescue Memprof::Error
          nil
        end

        # The cluster whose worker this process is; nil if there are no others.
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
          rows = blocks
          { pid: Process.pid, location: location, sample: Malloc.sample,
            count: rows.sum { |row| row[:count] }, bytes: rows.sum { |row| row[:bytes] },
            more: [rows.size - MOST, 0].max, rows: rows.first(MOST), generation: GC.count }
        end

        private

        # By size and generation of allocation.
        def blocks
          Malloc.quiet do
            found = Malloc[location] or raise NotFound, "no memory was allocated there"
            rows = found.each.to_a.tally.map do |(size, generation), count|
              { count: count, size: size, bytes: size * count, generation: generation }
            end
            rows.sort_by { |row| [-row[:bytes], -row[:generation]] }
          end
        end

        def location = text(:location) || raise(BadRequest, "location is missing")
      end
    end
  end
end
