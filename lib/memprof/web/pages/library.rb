# frozen_string_literal: true

module Memprof
  class Web
    module Pages
      # A page about stored dumps, only with `memprof web --library`.
      class LibraryPage < Page
        def self.there?(heaps, _) = !heaps.library.nil?

        def library
          heaps.library || raise(NotFound, "no such page")
        end

        def entry_of_path
          library.find(captured_number(:number)) ||
            raise(NotFound, "the library has no dump #{captures.fetch(:number)}")
        end

        def breadcrumbs = [["Library", "/library"]]
      end

      # `/library`: the stored dumps, newest first.
      class LibraryList < LibraryPage
        at "/library", menu: "Library", order: 6

        EACH = 100
        # Sort keys and directions: numbers and dates descending, words ascending.
        SORTS = { added: -1, taken: -1, size: -1, objects: -1, name: 1, app: 1, host: 1 }.freeze
        private_constant :EACH, :SORTS

        def title = text(:app) ? "Dumps of #{text(:app)}" : "Library"

        def breadcrumbs = text(:app) ? super : []

        def data
          all = library.map(&:to_h)
          chosen = text(:app) ? all.select { |row| row[:app] == text(:app) } : all
          sort = choice(:sort, SORTS.keys, :added)
          series = series(all)
          rows = rows_of_page(sorted(chosen, sort), EACH)
          {
            dumps: rows.map { |row| row.merge(series: series[process(row)]) }, total: chosen.size,
            each: rows_each(EACH), page: number, sort: sort, app: text(:app), apps: apps(all),
            directory: library.directory, size: library.size, max_size: library.max_size
          }
        end

        private

        def process(row) = row.values_at(:app, :host, :pid)

        # The dumps of each process, oldest first: two or more show growth. Selects a few of many.
        def series(rows)
          known = rows.select { |row| row[:pid] && row[:taken] }.sort_by { |row| row[:taken] }
          dumps = known.group_by { |row| process(row) }.select { |_, of_one| of_one.size > 1 }
          dumps.transform_values { |of_one| spread(of_one.map { |row| row[:id] }) }
        end

        def spread(ids)
          most = heaps.max_open
          return ids if ids.size <= most

          Array.new(most) { |index| ids[index * (ids.size - 1) / (most - 1)] }
        end

        def apps(rows)
          rows.group_by { |row| row[:app] }.sort.map { |app, dumps| { app: app, dumps: dumps.size } }
        end

        # Unknown values come last.
        def sorted(rows, sort)
          known, unknown = rows.partition { |row| row[sort] }
          ordered = known.sort_by { |row| [row[sort], row[:id]] }
          (SORTS.fetch(sort).negative? ? ordered.reverse : ordered) + unknown
        end
      end

      # `/library/1732252245000`: everything known about a dump.
      class LibraryDump < LibraryPage
        at "/library/:number"
        post "/library/:number/rename", :rename
        post "/library/:number/delete", :delete

        def title = entry_of_path.name

        def data
          dump = entry_of_path.to_h
          others = library.map(&:to_h).select { |row| row[:app] == dump[:app] && row[:id] != dump[:id] }
          { dump: dump, file: entry_of_path.path, others: others.first(20) }
        end

        # Changes the dump's name and application.
        def rename(request)
          number = entry_of_path.number
          name = request.form["name"].to_s
          raise BadRequest, "name is missing" if name.strip.empty?

          heaps.forget(number) # it is open under its old name
          library.rename(number, name, app: request.form["app"])
          "/library/#{number}"
        end

        # Deletes the dump, and closes its heap.
        def delete(_request)
          number = entry_of_path.number
          heaps.forget(number)
          library.delete(number)
          "/library"
        end
      end
    end
  end
end
