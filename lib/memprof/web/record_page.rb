# frozen_string_literal: true

module Memprof
  class Web
    # A page about files of one kind, or one of them, that are no heaps.
    #
    # @abstract
    # @api private
    class RecordPage < Page
      class << self
        # @return [Symbol] of the files, as {Records} has it
        attr_reader :kind

        # @param kind [Symbol]
        # @return [void]
        def about(kind)
          @kind = kind
        end

        # @param heaps [Heaps]
        # @return [Boolean] whether the menu has it: if there is a file of this kind
        def there?(heaps) = heaps.records.any? { |record| record.kind == kind }
      end

      # @return [Records::Record]
      # @raise [NotFound]
      def record
        @record ||= heaps.records.fetch(captures.fetch(:id), self.class.kind)
      end

      # @return [Records::Traces, Records::Tracked]
      def content = record.content

      # @param path [String]
      # @return [String] of a page of the same file
      def within(path = "") = "#{record.page_path}#{path}"

      # @return [Array<Array(String, String)>]
      def breadcrumbs = [["Files", "/#{Records::PLACES.fetch(self.class.kind)}"]]

      # @return [Array<String>]
      def styles = ["records.css"]
    end
  end
end
