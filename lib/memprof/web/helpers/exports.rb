# frozen_string_literal: true

require_relative "../template"

module Memprof
  class Web
    module Helpers
      # What a page exports: the tables and pictures that its view draws, each with the heading above it.
      module Exports
        include Template::Building # knows the heading above

        HEADING = %r{<h[1-3]\b[^>]*>(?<text>(?:(?!</h[1-3]>).)*)</h[1-3]>}m
        # Rows of an export of a list that has several pages.
        MOST = 10_000
        private_constant :HEADING

        # A table or picture: its name, and itself.
        Exported = Struct.new(:name, :content)

        def tables = @tables ||= []

        def pictures = @pictures ||= []

        # Exports rows that the page shows in another way, such as a tree.
        def rows_of_picture(rows, **options)
          table = Table.new(self, rows, **options)
          yield(table)
          exported(tables, table)
        end

        # A picture, which is exported as well.
        def drawing(svg)
          exported(pictures, svg)
          svg
        end

        # The last table is a part of a list with so many rows.
        def whole_list_of(total)
          @total = total
          @paged = tables.size
        end

        # A menu that works without scripts.
        def export_menu
          return unless page.class.path

          items = [copy_button, export("Markdown", "md"), csv_links, export("JSON", "json"), svg_links]
          rows = items.flatten.compact.map { |item| Html.tag(:li, item) }
          Html.tag(:details, Html.tag(:summary, "Export"), Html.tag(:ul, rows), class: "exports")
        end

        # The rows of a list with several pages, and those that are shown.
        def cut_list = @total && [@total, tables[@paged - 1].content.size]

        # The page's question on a command line.
        def terminal_line(copy: true)
          command = page.command or return

          button = Html.tag(:button, "Copy", type: "button", hidden: true, data_copy: command) if copy
          Html.tag(:p, "In a terminal: ", Html.tag(:code, command), " ", button, class: "terminal quiet")
        end

        private

        def exported(list, content, name = nil)
          list << Exported.new(name || heading_above, content)
        end

        def heading_above
          heading = builders.reverse.filter_map { |builder| last_heading(builder.so_far) }.first
          heading || page&.title
        end

        def last_heading(html)
          start = html.rindex(/<h[1-3]\b/) or return
          heading = HEADING.match(html, start)
          heading && Html.text(Html.new(heading[:text])).gsub(/\s+/, " ").strip
        end

        def copy_button
          Html.tag(:button, "Copy as Markdown", type: "button", hidden: true,
            data_copy_from: export_url("md"))
        end

        def csv_links
          links = several(tables, "CSV", "csv", :table)
          links << whole_list if @total
          links
        end

        def svg_links = several(pictures, "SVG", "svg", :picture)

        def several(list, word, format, parameter)
          list.each_with_index.map do |one, index|
            words = list.one? ? word : "#{word}: #{one.name[0, 60]}"
            export(words, format, parameter => (index + 1 if index.positive?))
          end
        end

        def whole_list
          which = @total > MOST ? "the first" : "all"
          words = "CSV, #{which} #{Units.count([@total, MOST].min)} rows"
          export(words, "csv", table: (@paged if @paged > 1), page: nil, each: [@total, MOST].min)
        end

        def export(words, format, **changes)
          Html.tag(:a, words, href: export_url(format, **changes), download: (true unless format == "json"))
        end

        def export_url(format, **changes)
          url("#{request.path.chomp("/")}.#{format}", **page.params.transform_keys(&:to_sym), **changes)
        end
      end
    end
  end
end
