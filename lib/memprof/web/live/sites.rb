# frozen_string_literal: true

require_relative "../../cell"
require_relative "../../printable"

module Memprof
  class Web
    class Live
      # Sites by their live bytes, largest first: from tracking, or else from the agent's last interval.
      module Sites
        class << self
          # Tracked objects that no GC has freed yet. Walks the heap. An interval of the agent has the ages.
          def tracked(most, interval = nil)
            collections = GC.count
            sites = live(Memprof.send(:session).counts(retained: true))
            known = interval ? ages(interval) : {}
            largest = sites.min_by(most) { |place, (_, size)| [-size, place.map(&:to_s)] }
            rows = largest.map do |place, (count, size)|
              mean, oldest = known[place]
              file, line, name = place
              placed({ file: file, line: line, class: name, size: size, count: count, live_for: mean,
                       oldest: oldest })
            end
            { source: :tracking, collections: collections, sites: sites.size,
              bytes: sites.each_value.sum(&:last), objects: sites.each_value.sum(&:first), rows: rows }
          end

          def of_agent(interval, most)
            report = interval.report
            { source: :agent, collections: nil, sites: report.places(:retained, limit: most).first,
              bytes: report.total_retained_memsize, objects: report.total_retained,
              rows: rows(interval, most).map { |row| placed(row) } }
          end

          # The largest sites of an interval of the agent.
          def rows(interval, most)
            ages = ages(interval)
            interval.report.places(:retained, limit: most).last.map do |site|
              mean, oldest = ages[[site.file, site.line, site.class_name]]
              { file: site.file, line: site.line, method: site.method_name, class: site.class_name,
                size: site.retained_bytes, count: site.retained_objects, live_for: mean, oldest: oldest }
            end
          end

          private

          # Objects and bytes by place; anonymous classes of one name are one.
          def live(counts)
            counts.each_with_object({}) do |(_, (file, line, name, _), _, (count, size)), sites|
              next if count.zero?

              sum = sites[[file, line, name]] ||= [0, 0]
              sum[0] += count
              sum[1] += size
            end
          end

          # With the short name of the place.
          def placed(row) = { **row, class: Printable.line(row[:class].to_s), place: Cell.place(row) }

          # Mean and largest age of the live objects of each line and class. Stacks of a line are merged, as
          # in the table.
          def ages(interval)
            sites = interval.report.sites
            return {} unless interval.ages && interval.ages.size == sites.size

            live = sites.zip(interval.ages).select { |site, _| site.retained_objects.positive? }
            live.group_by { |site, _| [site.file, site.line, site.class_name] }.transform_values do |rows|
              objects = rows.sum { |site, _| site.retained_objects }
              [rows.sum { |site, (mean, _)| mean * site.retained_objects } / objects,
                rows.map { |_, (_, oldest)| oldest }.max]
            end
          end
        end
      end
    end
  end
end
