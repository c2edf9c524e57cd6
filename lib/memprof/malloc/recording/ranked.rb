# frozen_string_literal: true

require_relative "../../paths"
require_relative "../../table"
require_relative "../../units"

module Memprof
  module Malloc
    class Recording
      # Shared by the texts about recordings: the first rows of a table, and short places.
      module Ranked
        private

        # The block returns the cells of a row.
        def ranked(rows, table, limit, paint)
          rows.first(limit).each { |row| table.row(*yield(row)) }
          more = rows.size - limit
          return drawn(table, paint) unless more.positive?

          "#{drawn(table, paint)}#{"\n" if @markdown}... #{Units.count(more)} more (--limit N)\n"
        end

        def drawn(table, paint) = @markdown ? table.to_markdown : table.to_text(paint)

        def short(place)
          @directory ||= Paths.working_directory
          Printable.line(Paths.short(place, @directory))
        end
      end
      private_constant :Ranked
    end
  end
end
