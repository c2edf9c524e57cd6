# frozen_string_literal: true

require_relative "markdown"
require_relative "picture"
require_relative "response"

module Memprof
  class Web
    # A page as a file: its tables as CSV, all of it as Markdown, its pictures as SVG. All are made from what
    # the page's view draws, so they agree with it. JSON is the page's data.
    class Export
      TYPES = { "csv" => "text/csv; charset=utf-8", "md" => "text/markdown; charset=utf-8",
                "svg" => "image/svg+xml" }.freeze

      def initialize(view)
        @view = view
        @page = view.page
      end

      def response(format)
        @view.render_content(@page.view)
        Response.download("#{name}.#{format}", TYPES.fetch(format), public_send(format))
      end

      # The parameter `table` chooses one of several.
      def csv = chosen(@view.tables, :table).to_csv

      def md
        command = "\n#{Table.code(@page.command)}\n" if @page.command
        "#{Markdown.of(@view.content)}#{command}"
      end

      # The parameter `picture` chooses one of several.
      def svg = Picture.new(chosen(@view.pictures, :picture)).to_svg

      private

      def chosen(list, word)
        number = @page.position(word)
        raise NotFound, "this page has #{Units.plural(list.size, word.to_s)}" if number > list.size

        list[number - 1].content
      end

      def name
        subject = @page.subjects.map(&:name).join("-")
        [subject, @page.title].reject(&:empty?).uniq.join("-").gsub(/[^\w.-]+/, "_")[0, 100]
      end
    end
  end
end
