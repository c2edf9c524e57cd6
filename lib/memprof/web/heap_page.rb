# frozen_string_literal: true

module Memprof
  class Web
    # A page about one heap: its path begins with `/heaps/:heap/`.
    class HeapPage < Page
      EACH = 50 # rows of a page of a list

      def entry
        @entry ||= heaps.fetch(captures.fetch(:heap))
      end

      def heap = entry.heap

      def here(path = "/") = "/heaps/#{entry.id}#{path}"

      def breadcrumbs = [[entry.name, here]]

      private

      def command_line(verb, *arguments, **options)
        options = { blocks: true, **options } if entry.blocks?
        super(verb, entry.file, arguments: arguments, **options)
      end

      # Asks the heap a question. For parameters that are nil, the question's default applies.
      def ask(question, **parameters)
        entry.answer(question, parameters.compact)
      rescue ArgumentError => e
        raise BadRequest, e.message
      end

      # The heap itself paginates long lists: a page never gets more rows than it shows.
      def each = rows_each(EACH)

      def part = { limit: each, offset: (number - 1) * each }

      def paging(rows, more)
        { page: number, each: each, total: part[:offset] + existing(rows, number).size + more }
      end
    end
  end
end
