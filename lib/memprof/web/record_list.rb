# frozen_string_literal: true

require_relative "record_page"

module Memprof
  class Web
    # The files of one kind; goes to the only one if there is one.
    class RecordList < RecordPage
      def redirect
        files.first.page_path if files.size == 1
      end

      def breadcrumbs = []

      def view = "record_list"

      def data
        { files: files.map { |record| { id: record.id, name: record.name, path: record.path } } }
      end

      private

      def files
        heaps.records.select { |record| record.kind == self.class.kind }
      end
    end
  end
end
