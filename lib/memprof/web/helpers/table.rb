# frozen_string_literal: true

module Memprof
  class Web
    module Helpers
      # Tables, sorted and paginated by the server.
      module Tables
        def table(rows, **options)
          table = Table.new(self, rows, **options)
          yield(table)
          table.to_html
        end

        def pager(total:, each:, page:, name: :page)
          last = [(total - 1) / each + 1, 1].max
          return Html.new if last == 1

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
        Column = Struct.new(:heading, :kind, :order, :sentence, :content)
        private_constant :Column

        # A table with an `id` is there without rows, too: a script fills it.
        def initialize(view, rows, sorted: nil, empty: "None.", id: nil)
          @view = view
          @rows = rows
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
          content ||= ->(row) { present(row[key], kind) }
          @columns << Column.new(heading, kind, sort, sentence, content)
          self
        end

        def to_html
          return Html.tag(:p, @empty, class: "empty") if @rows.empty? && !@id

          head = Html.tag(:thead, Html.tag(:tr, @columns.map { |column| heading(column) }))
          rows = @rows.map { |row| Html.tag(:tr, @columns.map { |column| cell(column, row) }) }
          body = Html.tag(:tbody, rows)
          Html.tag(:div, Html.tag(:table, head, body, id: @id), class: "scroll")
        end

        private

        def present(value, kind)
          case kind
          when :bytes then @view.bytes(value)
          when :percent then Html.join([@view.percent(value), @view.bar(value)])
          when :place then @view.site(value)
          when :text, :name, :label then @view.short(value.to_s)
          else Cell.text(value, kind)
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

        def style(column)
          case column.kind
          when :percent then "number share"
          when :address then "address"
          else "number" if Cell.number?(column.kind)
          end
        end
      end
    end
  end
end
