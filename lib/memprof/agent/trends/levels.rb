# frozen_string_literal: true

module Memprof
  module Agent
    class Trends
      # How many bytes of a site each worker had when it stopped growing. A store fills again after each
      # restart, for as long as a day: up to where it has ended before, that is not a leak.
      class Levels
        # A store is not equally full each time.
        ROOM = 1.2
        # A level that was not seen for four weeks is forgotten.
        KEPT = 28 * 24
        MOST = 200
        TEXTS = %w[service file class].freeze
        NUMBERS = %w[line bytes seen_at].freeze
        private_constant :ROOM, :KEPT, :MOST, :TEXTS, :NUMBERS

        # `rows` is what {rows} returned; anything else in it is ignored.
        def initialize(rows)
          rows = rows.is_a?(Array) ? rows.grep(Hash).last(MOST) : []
          @rows = rows.select { |row| row?(row) }.to_h { |row| [key(row), row] }
        end

        def rows = @rows.values.last(MOST)

        # The site has stopped growing; the largest level counts.
        def add(site, service, bytes, now)
          row = { "service" => service.to_s, "file" => site[0], "line" => site[1], "class" => site[2] }
          known = @rows.delete(key(row))
          @rows[key(row)] = row.merge("bytes" => [bytes, known&.fetch("bytes") || 0].max, "seen_at" => now)
        end

        # Whether a site has no more bytes in each worker than when it stopped growing.
        def within?(site, service, bytes)
          row = bytes && @rows[[service.to_s, *site]]
          !row.nil? && bytes <= ROOM * row["bytes"]
        end

        def forget(now, hour)
          @rows.reject! { |_, row| now - row["seen_at"] > KEPT * hour }
        end

        private

        def key(row) = row.values_at("service", "file", "line", "class")

        def row?(row)
          TEXTS.all? { |key| row[key].is_a?(String) } && row["line"].is_a?(Integer) &&
            NUMBERS.all? { |key| row[key].is_a?(Numeric) && row[key].finite? }
        end
      end
    end
  end
end
