# frozen_string_literal: true

module Memprof
  class Web
    module Pages
      # A page that asks the heap one question and shows the answer; the heap paginates long lists.
      class List < HeapPage
        class << self
          # The name of the question, the key of its rows, their sort keys, and further parameters.
          attr_reader :question, :rows, :sorts, :parameters

          def asks(question, rows: nil, sorts: nil, filter: true, **parameters)
            @question = question
            @rows = rows
            @sorts = sorts
            @filter = filter
            @parameters = parameters
          end

          def filter? = @filter
        end

        def assets = self.class.filter? ? ["filter.js"] : []

        def data
          kind = self.class
          where = text(:where) if kind.filter? || kind.rows
          sort = choice(:sort, kind.sorts, kind.sorts.first) if kind.sorts
          answer = ask(kind.question, where: where, sort: sort, **kind.parameters, **(kind.rows ? part : {}))
          answer = answer.merge(where: where) if kind.filter?
          kind.rows ? answer.merge(paging: paging(answer[kind.rows], answer[:more])) : answer
        end
      end

      # Objects that match a filter, largest first.
      class ObjectList < List
        at "/heaps/:heap/objects", title: "Objects", menu: "Objects", order: 40
        asks :top, rows: :objects,
          sorts: %i[retained size length references referrers depth address]

        def command
          offset = part[:offset] if number > 1
          command_line("top", where: text(:where), sort: text(:sort), offset: offset)
        end
      end

      # Paths that retain the objects matching a filter, merged if they differ only in indices and keys.
      class MergedPaths < List
        at "/heaps/:heap/paths", title: "Merged paths", menu: "Paths", order: 45
        asks :merged_paths, limit: 100

        def command = command_line("path", where: text(:where) || "reachable")
      end

      # Equal strings.
      class Strings < List
        at "/heaps/:heap/strings", title: "Duplicate strings", menu: "Strings", order: 70
        asks :duplicates, rows: :rows

        def command = command_line("dups", where: text(:where))
      end

      # Arrays, hashes and the like: how full they are, and what references empty ones.
      class Collections < List
        at "/heaps/:heap/collections", title: "Collections", menu: "Collections", order: 75
        asks :collections, sorts: %i[unused length retained size], limit: 50

        def command
          command_line("dups", collections: true, where: text(:where), sort: text(:sort) || :unused)
        end
      end

      # Procs by the place of their block, with what they captured.
      class Procs < List
        at "/heaps/:heap/procs", title: "Procs", menu: "Procs", order: 80
        asks :procs, rows: :rows, sorts: %i[retained count size]

        def command = command_line("top", procs: true, where: text(:where))
      end

      # Threads, their state, and what their stacks reference.
      class Threads < List
        at "/heaps/:heap/threads", title: "Threads", menu: "Threads", order: 90
        asks :threads, rows: :rows, filter: false

        def command = command_line("query", "class = Thread")
      end

      # How full the pages of the heap are.
      class Slots < List
        at "/heaps/:heap/slots", title: "Slots", menu: "Slots", order: 100
        asks :slots, filter: false

        # A core file may have no Ruby.
        def self.there?(_heaps, entry) = entry.ruby?

        def command = command_line("slots")
      end
    end
  end
end
