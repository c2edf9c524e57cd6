# frozen_string_literal: true

module Memprof
  class Web
    module Helpers
      # Tables, sorted and paginated by the server.
      module Tables
        def table(rows, **options)
          table = Table.new(self, rows, **options)
          yield(table)
          exported(tables, table, table.name)
          table.to_html
        end

        # Lists whose pages are chosen by the parameter `page` are exported as a whole, too.
        def pager(total:, each:, page:, name: :page)
          each = @page.rows_each(each) if name == :page
          last = [(total - 1) / each + 1, 1].max
          return Html.new if last == 1

          whole_list_of(total) if name == :page

          steps = [
            ["First", 1], ["Previous", page - 1, "prev"], ["Next", page + 1, "next"], ["Last", last]
          ]
          links = steps.map do |word, target, relation|
            there = target.between?(1, last) && target != page
            there ? link(word, same(name => target), rel: relation) : word
          end
          links.insert(2, "Page #{count(page)} of #{count(last)}")
          Html.tag(:nav, links.map { |part| Html.tag(:span, part) }, class: "pager", aria_label: "Pages")
        end
      end

      # A table builder.
      class Table
        Column = Struct.new(:heading, :kind, :key, :order, :sentence, :content)
        NAMING = %i[name label place text].freeze
        THINGS = %w[Object Request Dump].freeze
        SITE = Columns.fetch(:site).heading
        private_constant :Column, :NAMING, :THINGS, :SITE

        attr_reader :name

        # `name` is that of the export, if the heading comes later. A table with an `id` is there without
        # rows, too: a script fills it.
        def initialize(view, rows, sorted: nil, empty: "None.", name: nil, id: nil)
          @view = view
          @rows = rows
          @name = name
          @sorted = sorted.to_s
          @empty = empty
          @id = id
          @columns = []
        end

        # Adds columns of the table. `as` is the name in the answer, if that is not the key; with `sort`, the
        # heading sorts by it, or by that word.
        def columns(*keys, as: nil, kind: nil, sort: nil, &content)
          keys.each do |key|
            known = Columns.fetch(key)
            name = as || key
            column(known.heading, kind || known.kind, name, sort: sort == true ? name : sort,
              sentence: known.sentence, &content)
          end
          self
        end

        # Adds a column whose heading the answer decides, or one without a heading.
        def column(heading, kind, key = nil, sort: nil, sentence: nil, &content)
          content ||= ->(row) { @view.present(row[key], kind) }
          key ||= heading.downcase.gsub(/\W+/, "_")
          @columns << Column.new(heading, kind, key, sort, sentence, content)
          self
        end

        def size = @rows.size

        def to_html
          return Html.tag(:p, @empty, class: "empty") if @rows.empty? && !@id

          head = Html.tag(:thead, Html.tag(:tr, @columns.map { |column| heading(column) }))
          rows = @rows.map { |row| Html.tag(:tr, @columns.map { |column| cell(column, row) }) }
          body = Html.tag(:tbody, rows)
          Html.tag(:div, Html.tag(:table, head, body, id: @id), class: "scroll")
        end

        # The rows with exact numbers, below the names of the columns; without columns that have nothing but
        # pictures and buttons.
        def to_csv
          @view.exactly do
            columns = @columns.reject { |column| column.heading.empty? }
            rows = @rows.map do |row|
              columns.map { |column| @view.value(column.content.call(*row.is_a?(Array) ? row : [row])) }
            end
            CsvText.of([names(columns), *rows])
          end
        end

        private

        # Groups by size have their size in two columns.
        def names(columns)
          names = columns.map { |column| column.key.to_s }
          names.each_with_index.map do |name, index|
            names.index(name) == index ? name : "#{name}_#{index + 1}"
          end
        end

        def heading(column)
          sorted = column.order && column.order.to_s == @sorted
          target = @view.same(sort: column.order, page: nil) if column.order
          text = @view.link(column.heading, target)
          Html.tag(:th, text, scope: "col", class: style(column), title: column.sentence,
            aria_sort: sorted && "descending")
        end

        def cell(column, row)
          Html.tag(:td, column.content.call(*row.is_a?(Array) ? row : [row]), class: style(column))
        end

        # The column that names a row remains in view while others scroll. A line allocates several classes.
        def naming
          @naming ||= begin
            texts = @columns.select { |column| NAMING.include?(column.kind) && !column.heading.empty? }
            first = texts.first
            first = texts.find { |column| column.heading == SITE } || first if first&.heading == "Class"
            texts.find { |column| THINGS.include?(column.heading) } || first ||
              @columns.find { |column| column.kind == :address }
          end
        end

        def style(column)
          name = "name" if column.equal?(naming)
          case column.kind
          when :percent then "number share"
          when :address then ["address", *name].join(" ")
          else Cell.number?(column.kind) ? "number" : name
          end
        end
      end
    end
  end
end
