# frozen_string_literal: true

module Memprof
  class Web
    # A page about one heap: its path begins with `/heaps/:heap/`.
    #
    # @abstract
    # @api private
    class HeapPage < Page
      # @return [Heaps::Entry] the heap's place in the list
      def entry
        @entry ||= heaps.fetch(captures.fetch(:heap))
      end

      # @return [Memprof::Heap]
      # @raise [Opening] if it is not open yet
      # @raise [Memprof::Error] if it could not be opened
      def heap
        entry.heap
      end

      # @param path [String] as "/groups"; the overview if empty
      # @return [String] of a page of the same heap
      def here(path = "/")
        "/heaps/#{entry.id}#{path}"
      end

      # @return [Array<Array(String, String)>]
      def breadcrumbs
        [[entry.name, here]]
      end

      private

      # Puts a question to the heap. Parameters that are nil are left to the question.
      def ask(question, **parameters)
        entry.answer(question, parameters.compact)
      rescue ArgumentError => e
        raise BadRequest, e.message
      end
    end
  end
end
