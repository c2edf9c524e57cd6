# frozen_string_literal: true

module Memprof
  class Web
    module Helpers
      # The lines that allocated most objects in a request, if they were traced.
      module AllocatingLines
        def allocating_lines(record)
          objects = (record["tracers"] || record)["objects"] if record.is_a?(Hash)
          lines = objects["lines"] if objects.is_a?(Hash)
          return Html.new unless lines.is_a?(Array) && !lines.empty?

          listed = table(lines.grep(Hash)) do |t|
            t.column("Objects", :count) { |line| count(line["count"].to_i) }
              .column("Bytes", :bytes) { |line| bytes(line["bytes"].to_i) }
              .column("Class", :text) { |line| short(Printable.line(line["class"])) }
              .column("Allocated at", :text) { |line| short(Printable.line(line["location"])) }
          end
          Html.tag(:section, Html.tag(:h2, "Lines that allocate most objects"), listed)
        end
      end
    end
  end
end
