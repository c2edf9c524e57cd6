# frozen_string_literal: true

module Memprof
  class Web
    module Helpers
      # The lines that allocated most objects in a request, or in all, if they were traced.
      module AllocatingLines
        def allocating_lines(record)
          objects = (record["tracers"] || record)["objects"] if record.is_a?(Hash)
          lines = objects["lines"] if objects.is_a?(Hash)
          return Html.new unless lines.is_a?(Array)

          table_of_lines(lines.grep(Hash).map do |line|
            { location: line["location"], class: line["class"], objects: line["count"].to_i,
              bytes: line["bytes"].to_i }
          end)
        end

        def allocations_of_all(rows, more) = table_of_lines(rows, more)

        private

        def table_of_lines(rows, more = 0)
          return Html.new if rows.empty?

          listed = table(rows) do |t|
            t.column("Objects", :count, :objects).column("Bytes", :bytes, :bytes)
            t.column("Requests", :count, :requests) if rows.first.key?(:requests)
            t.column("Class", :text) { |row| short(Printable.line(row[:class])) }
              .column("Allocated at", :text) { |row| short(Printable.line(row[:location])) }
          end
          rest = Html.tag(:p, "#{count(more)} more lines") if more.positive?
          Html.tag(:section, Html.tag(:h2, "Lines that allocate most objects"), listed, rest)
        end
      end
    end
  end
end
