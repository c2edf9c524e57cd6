# frozen_string_literal: true

module Memprof
  class Web
    # A page about one heap: its path begins with `/heaps/:heap/`.
    class HeapPage < Page
      def entry
        @entry ||= heaps.fetch(captures.fetch(:heap))
      end

      def heap = entry.heap

      def here(path = "/")
        "/heaps/#{entry.id}#{path}"
      end

      def breadcrumbs = [[entry.name, here]]

      private

      # Asks the heap a question. Parameters that are nil are left to the question.
      def ask(question, **parameters)
        entry.answer(question, parameters.compact)
      rescue ArgumentError => e
        raise BadRequest, e.message
      end
    end
  end
end
