# frozen_string_literal: true

module Memprof
  class Web
    # A page about files of one kind, or one of them, other than heaps.
    class RecordPage < Page
      class << self
        # The kind of its files, by the beginning of its path.
        def kind = Records::PLACES.key(path[/\w+/])

        def there?(heaps, _) = heaps.records.any? { |record| record.kind == kind }
      end

      def record
        @record ||= heaps.records.fetch(captures.fetch(:id), self.class.kind)
      end

      def content = record.content

      def within(path = "") = "#{record.page_path}#{path}"

      # Files to compare it with.
      def others = heaps.records.select { |other| other.kind == record.kind && other.id != record.id }

      # The file that it is compared with: `before`.
      def earlier
        @earlier ||= text(:before) && heaps.records.fetch(text(:before), self.class.kind)
      end

      # The file's main page is titled by the file's name.
      def title = super || record.name

      def breadcrumbs
        files = ["Files", "/#{Records::PLACES.fetch(self.class.kind)}"]
        self.class.path.end_with?("/:id") ? [files] : [files, [record.name, within]]
      end

      def assets = ["records.css", *super]

      private

      def command_line(verb, *before, **options) = super(verb, *before, record.path, **options)
    end
  end
end
