# frozen_string_literal: true

module Memprof
  class Web
    # A page about the blocks of malloc in a core file.
    class CorePage < HeapPage
      def self.there?(_heaps, entry) = entry.core?

      def breadcrumbs = super + [["Blocks", here("/blocks")]]

      private

      # Puts a question to the core file.
      def core(question, *arguments, **parameters)
        image # which says if there is none
        entry.core_answer(question, *arguments, **parameters)
      rescue ArgumentError => e
        raise BadRequest, e.message
      end

      # The core file itself, for questions about one address, whose answers are not kept.
      def image
        raise NotFound, "#{entry.name} is no core file: only these have blocks of malloc" unless entry.core?

        entry.core
      end

      # The words of the heap for an object at an address: nil if there is no Ruby in the file.
      def object_text(address)
        heap.at(address)&.to_s if ruby?
      end

      def ruby? = !core(:overview)[:ruby_pages].nil?
    end
  end
end
