# frozen_string_literal: true

require_relative "page"

module Memprof
  class Web
    # A page about dumps that are kept. There is none without `memprof web --library`.
    #
    # @abstract
    # @api private
    class LibraryPage < Page
      # @param heaps [Heaps]
      # @return [Boolean]
      def self.there?(heaps) = !heaps.library.nil?

      # @return [Library]
      # @raise [NotFound] if there is none
      def library
        heaps.library || raise(NotFound, "there is no such page")
      end

      # @return [Library::Entry] that the path names
      # @raise [NotFound]
      def entry_of_path
        number = Integer(captures.fetch(:number), 10, exception: false)
        library.find(number) || raise(NotFound, "the library has no dump #{captures.fetch(:number)}")
      end

      # @return [Array<Array(String, String)>]
      def breadcrumbs
        [["Library", "/library"]]
      end
    end
  end
end
