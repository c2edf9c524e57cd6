# frozen_string_literal: true

require_relative "page"

module Memprof
  class Web
    # A page about dumps that are kept. There is none without `memprof web --library`.
    class LibraryPage < Page
      def self.there?(heaps, _) = !heaps.library.nil?

      def library
        heaps.library || raise(NotFound, "no such page")
      end

      def entry_of_path
        number = Integer(captures.fetch(:number), 10, exception: false)
        library.find(number) || raise(NotFound, "the library has no dump #{captures.fetch(:number)}")
      end

      def breadcrumbs = [["Library", "/library"]]
    end
  end
end
