# frozen_string_literal: true

require_relative "../library_page"

module Memprof
  class Web
    module Pages
      # `/library`: the dumps that are kept, the youngest first.
      class LibraryList < LibraryPage
        at "/library", menu: "Library", order: 6

        EACH = 100
        # What a list may be sorted by, and how: numbers and dates from the greatest, words from A on.
        SORTS = { added: -1, taken: -1, size: -1, objects: -1, name: 1, app: 1, host: 1 }.freeze
        private_constant :EACH, :SORTS

        def title = text(:app) ? "Dumps of #{text(:app)}" : "Library"

        def breadcrumbs = text(:app) ? super : []

        def data
          all = library.map(&:to_h)
          chosen = text(:app) ? all.select { |row| row[:app] == text(:app) } : all
          sort = choice(:sort, SORTS.keys, :added)
          {
            dumps: rows_of_page(sorted(chosen, sort), EACH), total: chosen.size, each: EACH,
            page: number, sort: sort, app: text(:app), apps: apps(all), directory: library.directory,
            size: library.size, max_size: library.max_size
          }
        end

        private

        def apps(rows)
          rows.group_by { |row| row[:app] }.sort.map { |app, dumps| { app: app, dumps: dumps.size } }
        end

        # What is not known comes last.
        def sorted(rows, sort)
          known, unknown = rows.partition { |row| row[sort] }
          ordered = known.sort_by { |row| [row[sort], row[:id]] }
          (SORTS.fetch(sort).negative? ? ordered.reverse : ordered) + unknown
        end
      end
    end
  end
end
