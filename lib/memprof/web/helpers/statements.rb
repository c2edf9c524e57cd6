# frozen_string_literal: true

module Memprof
  class Web
    module Helpers
      # SQL statements of one request, or of all.
      module Statements
        # Letters of a statement that are shown; the tooltip has the rest.
        SQL = 240
        private_constant :SQL

        def statements(rows, more = 0)
          return Html.new if rows.empty?

          all = rows.first.key?(:requests)
          listed = table(rows) do |t|
            t.column("N+1", all ? :count : :text) { |row| repeated(row[:n_plus_one]) }
            t.column("Queries", :count, :queries)
            t.column("Requests", :count, :requests) if all
            t.column("Time", :number) { |row| Cell.seconds(row[:time]) }
              .column("Slowest", :number) { |row| Cell.seconds(row[:slowest]) }
              .column("SQL", :text) { |row| short(Printable.line(row[:sql]), SQL) }
              .column("Called at", :text) { |row| short(Printable.line(row[:caller])) }
          end
          rest = Html.tag(:p, "#{count(more)} more statements") if more.positive?
          Html.tag(:section, Html.tag(:h2, "SQL statements"), listed, rest)
        end

        private

        # In how many requests, or whether in this one.
        def repeated(times)
          times.is_a?(Integer) ? (count(times) if times.positive?).to_s : (times ? "N+1" : "")
        end
      end
    end
  end
end
