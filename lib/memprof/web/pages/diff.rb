# frozen_string_literal: true

require_relative "../frames"

module Memprof
  class Web
    module Pages
      # A page about two or three heaps: `a`, `b` and optionally `c` are their numbers, in chronological
      # order. Its links lead to the second heap, unless the object was freed there.
      class DiffPage < Page
        def comparison
          @comparison ||= heaps.comparison(entries)
        end

        def entries
          @entries ||= %w[a b c].filter_map { |name| text(name) && heaps.fetch(text(name)) }
        end

        def subjects = entries

        def subject = %w[a b c where].to_h { |name| [name.to_sym, text(name)] }.compact

        def entry = entries[1]

        def breadcrumbs = [["Heaps", "/heaps"]]

        def command = command_of_heaps("diff", entries, by: text(:by), where: text(:where))

        def assets = ["diff.css"]

        private

        # Asks the comparison a question about the filtered objects.
        def ask(question, **parameters)
          raise BadRequest, "a comparison needs two heaps: a=1&b=2" unless text(:a) && text(:b)

          comparison.ask(question, where: text(:where), **parameters)
        end

        def names = entries.map(&:name)
      end

      # `/diff?a=1&b=2&c=3`: the changes from one heap to the next. Without parameters, a choice of heaps.
      class Diff < DiffPage
        at "/diff"

        BY = %w[class site file type].freeze
        SORT = %w[size count new survived retained].freeze
        OWNERS = 8
        ROWS = 40
        SURVIVORS = 12
        private_constant :OWNERS, :ROWS, :SURVIVORS

        # With two or three heaps, there is nothing to choose.
        def redirect
          return if text(:a) || text(:b) || !heaps.count.between?(2, 3)

          "/diff?#{%w[a b c].zip(heaps.map(&:id)).filter_map { |name, id| "#{name}=#{id}" if id }.join("&")}"
        end

        def title = entries.size > 1 ? names.join(" \u2192 ") : "Compare heaps"

        def data
          open = heaps.map { |entry| { id: entry.id, name: entry.name } }
          return { open: open } unless text(:a) || text(:b)

          { open: open, totals: ask(:totals), heaps: comparison.heaps, rows: rows,
            owners: ask(:owners, limit: OWNERS, sort: :retained), survivors: survivors }.compact
        end

        def by = choice(:by, BY, "class")

        def sort = choice(:sort, comparison.three? ? SORT : SORT - ["survived"], "size")

        private

        def rows = ask(:rows, by: by, sort: sort, changed: true, limit: integer(:limit, ROWS, max: 1000))

        def survivors
          ask(:objects, change: :survived, limit: SURVIVORS) if comparison.three?
        end
      end

      # `/diff/objects?a=1&b=2&change=new`: objects that changed, one by one.
      class DiffObjects < DiffPage
        at "/diff/objects"

        CHANGES = %w[new gone kept survived temporary].freeze
        SORT = %w[retained size address].freeze
        TITLES = { "gone" => "Freed objects", "kept" => "Objects in both dumps" }.freeze
        EACH = 100
        private_constant :EACH

        def title = TITLES.fetch(change) { "#{change.capitalize} objects" }

        def breadcrumbs
          [*super, ["Comparison", "/diff?#{URI.encode_www_form(subject.except(:where))}"]]
        end

        def entry = change == "gone" ? entries[0] : super

        def data
          answer = ask(:objects, change: change, sort: sort, limit: each, offset: (number - 1) * each)
          existing(answer[:objects], number)
          answer.merge(paging: { page: number, each: each, total: answer[:count] })
        end

        def each = rows_each(EACH)

        def change = choice(:change, CHANGES, "new")

        def sort = choice(:sort, SORT, "retained")
      end

      # `/diff/flame?a=1&b=2`: how retained memory changed from the first heap to the last, as a flame graph.
      class DiffFlame < DiffPage
        at "/diff/flame", title: "What grew, as a flame graph"

        FRAMES = 4000
        private_constant :FRAMES

        # Its links lead to the last heap.
        def entry = entries.last

        def breadcrumbs = [*super, ["Comparison", "/diff?#{URI.encode_www_form(subject)}"]]

        def assets = [*super, "flame.js", "flame.css"]

        def data
          raise BadRequest, "a comparison needs two heaps: a=1&b=2" unless text(:a) && text(:b)

          { folded: 0, **Frames.widest(comparison.flame, integer(:limit, FRAMES, max: 20_000)) }
        end
      end

      # `/diff/interface?a=1&b=2`: references from old objects to new ones, and what those retain.
      class DiffInterface < DiffPage
        at "/diff/interface", title: "References from old to new objects"

        LIMIT = 30
        private_constant :LIMIT

        def breadcrumbs = [*super, ["Comparison", "/diff?#{URI.encode_www_form(subject)}"]]

        def data = ask(:interface, limit: integer(:limit, LIMIT, max: 1000))
      end
    end
  end
end
