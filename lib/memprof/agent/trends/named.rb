# frozen_string_literal: true

require_relative "../leak"
require_relative "levels"

module Memprof
  module Agent
    class Trends
      # What was named on this host, and which releases were observed for how long: so a restart or a deploy
      # does not name a leak again, and a new leak has the release that brought it.
      class Named
        # A leak is repeated after a day, or if its rate has doubled.
        DAY = 24
        DOUBLED = 2
        # A leak that was not seen for a week is forgotten.
        WEEK = 7 * DAY
        # Hours of observation in which a leak of an earlier release would have been named.
        ENOUGH = 6
        # Entries.
        LEAKS = 200
        RELEASES = 50
        private_constant :DAY, :DOUBLED, :WEEK, :ENOUGH, :LEAKS, :RELEASES

        TEXTS = %w[file class service].freeze
        OPTIONAL = %w[release since holder].freeze
        NUMBERS = %w[line bytes_per_hour error hours named_at named_rate seen_at began_at].freeze
        private_constant :TEXTS, :OPTIONAL, :NUMBERS

        # `content` is what {content} returned; anything else in it is ignored.
        def initialize(content)
          @decided = content["decided"].is_a?(Hash) ? content["decided"] : {}
          @releases = rows(content["releases"]).select { |row| release?(row) }
          @leaks = rows(content["leaks"]).select { |row| leak?(row) }
          @levels = Levels.new(content["levels"])
        end

        def content
          {
            decided: @decided.to_a.last(RELEASES).to_h, releases: @releases.last(RELEASES),
            leaks: @leaks.last(LEAKS), levels: @levels.rows
          }
        end

        # The leaks of a service, fastest first.
        def leaks(service)
          rows = @leaks.select { |row| row["service"] == service }
          rows.map { |row| leak(row) }.sort_by { |leak| -leak.bytes_per_hour }.freeze
        end

        # Whether another process has decided so recently.
        def decided?(service, now, seconds)
          last = @decided[service.to_s]
          last.is_a?(Numeric) && last <= now && now - last < seconds
        end

        # Counts the hours in which a release was observed.
        def observe(labels, now, hour)
          service, release = labels.values_at(:service, :release)
          last = @decided.delete(service.to_s)
          @decided[service.to_s] = now
          return unless release

          row = release_row(service, release)
          passed = last.is_a?(Numeric) ? (now - last) / hour : 0
          row["hours"] += passed if passed.between?(0, 1)
        end

        # Remembers sites that have stopped growing, with the bytes of each worker.
        def level(levels, labels, now, hour)
          @levels.forget(now, hour)
          levels.each { |site, bytes| @levels.add(site, labels[:service], bytes, now) }
        end

        # Adds the growing sites, but for those that grow back to their level. Returns the leaks that are to
        # be logged: new ones, and those due again.
        def add(found, labels, now, hour)
          forget(now, hour)
          found = found.reject { |site, growth| @levels.within?(site, labels[:service], growth.share) }
          found.filter_map do |site, growth|
            row = known(site, labels[:service])
            due = row.nil? || due?(row, growth, now, hour)
            row ||= new_row(site, growth, labels, now, hour)
            update(row, growth, labels, now, hour)
            next unless due

            row["named_at"] = now
            row["named_rate"] = growth.rate
            leak(row)
          end
        end

        # Stores the holder of a leak.
        def hold(leak)
          row = known([leak.file, leak.line, leak.class_name], leak.service)
          row["holder"] = leak.holder if row
        end

        private

        def rows(list) = list.is_a?(Array) ? list.grep(Hash).last(LEAKS) : []

        def release?(row)
          row.values_at("service", "release").all?(String) && number?(row["hours"])
        end

        def leak?(row)
          TEXTS.all? { |key| row[key].is_a?(String) } && NUMBERS.all? { |key| number?(row[key]) } &&
            OPTIONAL.all? { |key| row[key].nil? || row[key].is_a?(String) } && row["line"].is_a?(Integer) &&
            row["workers"].is_a?(Array) && row["workers"].size == 2 && row["workers"].all?(Integer)
        end

        def number?(value) = value.is_a?(Numeric) && value.finite?

        def known((file, line, class_name), service)
          wanted = [service.to_s, file, line, class_name]
          @leaks.find { |row| row.values_at("service", "file", "line", "class") == wanted }
        end

        def release_row(service, release)
          found = @releases.find { |row| row["service"] == service.to_s && row["release"] == release }
          return found if found

          @releases << { "service" => service.to_s, "release" => release, "hours" => 0.0 }
          @releases.last
        end

        def due?(row, growth, now, hour)
          growth.rate >= row["named_rate"] * DOUBLED ||
            now - row["named_at"] >= DAY * hour
        end

        def new_row((file, line, class_name), growth, labels, now, hour)
          row = {
            "file" => file, "line" => line, "class" => class_name, "service" => labels[:service].to_s,
            "since" => since(labels), "holder" => nil, "began_at" => now - growth.hours * hour
          }
          @leaks << row
          row
        end

        # This release, if another one was observed for long enough without this leak.
        def since(labels)
          others = @releases.select { |row|
            row["service"] == labels[:service].to_s && row["release"] != labels[:release]
          }
          labels[:release] if others.any? { |row| row["hours"] >= ENOUGH }
        end

        # Growth that was seen all the time began with the first of it; after a restart, with this process.
        def update(row, growth, labels, now, hour)
          began = now - growth.hours * hour
          row["began_at"] = began if row["seen_at"].nil? || row["seen_at"] < began || began < row["began_at"]
          row.update(
            "bytes_per_hour" => growth.rate, "error" => growth.error,
            "workers" => [growth.growing, growth.workers], "release" => labels[:release],
            "seen_at" => now, "hours" => (now - row["began_at"]) / hour
          )
        end

        def forget(now, hour)
          @leaks.reject! { |row| now - row["seen_at"] > WEEK * hour }
        end

        def leak(row)
          Leak.new(
            file: row["file"], line: row["line"], class_name: row["class"], service: row["service"],
            bytes_per_hour: row["bytes_per_hour"].to_f, error: row["error"].to_f, hours: row["hours"].to_f,
            workers: row["workers"], release: row["release"], since: row["since"], holder: row["holder"],
            named_at: Time.at(row["named_at"])
          )
        end
      end
    end
  end
end
