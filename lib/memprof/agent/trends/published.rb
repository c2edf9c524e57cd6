# frozen_string_literal: true

module Memprof
  module Agent
    class Trends
      # The series of a process in its file: written for others, and read with distrust.
      class Published
        SITES = 256
        POINTS = 100
        NAME = 4096
        # Older series, as shares of an hour, are those of a process that ended.
        FRESH = 0.3
        private_constant :SITES, :POINTS, :NAME, :FRESH

        attr_reader :times, :series

        class << self
          # The content of a file: the largest sites of a table. Not the growing ones: sums over those would
          # grow.
          def content(table, labels, most)
            sites = table.series.max_by(most) { |_, series| series.bytes.last }
            {
              service: labels[:service], release: labels[:release], worker: labels[:worker].to_s,
              pid: Process.pid, settled: table.settled,
              times: table.times, majors: table.majors, allocated: table.allocated,
              sites: sites.map { |site, series| [*site, *series.to_a.map { |column| whole(column) }] }
            }
          end

          # Those of processes that run the same release of the service now.
          def read(pool, labels, now, hour)
            pool.each_published.filter_map do |content|
              next unless content.values_at("service", "release") == labels.values_at(:service, :release)

              found = new(content)
              found if found.valid? && found.times.last.between?(now - FRESH * hour, now + FRESH * hour)
            end
          end

          private

          def whole(column) = column.map { |number| number&.round }
        end

        def initialize(content)
          @settled = content["settled"]
          @times = content["times"]
          @majors = content["majors"]
          @allocated = content["allocated"]
          @sites = content["sites"]
        end

        # What it says of a site.
        def track(site) = Judgement::Track.new(@settled, @times, @series[site], @majors, @allocated)

        # Whether it has the form that {content} gives it. Another process may have written anything.
        def valid?
          return false unless (@settled.nil? || number?(@settled)) && @sites.is_a?(Array)
          return false unless [@times, @majors, @allocated].all? { |list| numbers?(list) } && @times.any?
          return false unless [@majors, @allocated].all? { |list| list.size == @times.size }
          return false unless @times.each_cons(2).all? { |a, b| a < b } && @sites.size <= SITES

          @sites.all? { |site| site?(site) } && store
        end

        private

        def site?(site)
          return false unless site.is_a?(Array) && site.size == 6

          file, line, class_name, *columns = site
          [file, class_name].all? { |name|
            name.is_a?(String) && name.bytesize <= NAME
          } && line.is_a?(Integer) &&
            columns.all? { |column| column?(column) }
        end

        def column?(column)
          column.is_a?(Array) && column.size == @times.size && column.all? { |number|
            number.nil? || number?(number)
          }
        end

        def numbers?(list) = list.is_a?(Array) && list.size <= POINTS && list.all? { |number|
                               number?(number)
                             }

        def number?(value) = value.is_a?(Numeric) && value.finite? && value.between?(0, 1e15)

        def store
          @series = @sites.to_h do |file, line, class_name, *columns|
            [[file, line, class_name], SeriesTable::Series.new(*columns)]
          end
          true
        end
      end
    end
  end
end
