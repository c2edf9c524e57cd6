# frozen_string_literal: true

require_relative "../../malloc"
require_relative "../answers"

module Memprof
  class Web
    class Records
      # A malloc recording with cached answers, valid as long as the file does not grow.
      class Recording
        PARTS = 120 # of the time in a picture
        KEPT = 12 # answers
        private_constant :PARTS, :KEPT

        def self.read(io) = new(io.path).tap(&:summary)

        def initialize(path)
          @path = path
          @answers = Answers.new(KEPT)
        end

        # The range is `from:` and `to:` of {Malloc::Recording#initialize}.
        def summary(**range) = recording(range).to_h

        def locations(sort, part: nil, **range)
          rows = summary(**range)[:locations]
          rows = rows.select { |row| row[:location].include?(part) } if part
          rows.sort_by { |row| [-row[sort], row[:location]] }
        end

        def flame(value, **range) = once([:flame, value, range]) { recording(range).flame(value: value) }

        # The stacks that allocated at a location, from the allocating frame to its callers.
        def callers(location, value, **range)
          once([:callers, location, value, range]) do
            recording(range).tree(:bottom_up, value: value, at: location)
          end
        end

        # Consumption over time, in equal intervals: maximum live bytes and RSS, and calls.
        def timeline
          once(:timeline) do
            points = summary[:timeline]
            points.size > 1 ? { seconds: points.last[:ms] / 1000.0, parts: cut_up(points) } : nil
          end
        end

        private

        def recording(range) = once([:recording, range]) { Malloc::Recording.new(@path, **range) }

        def once(question, &work)
          stat = File.stat(@path)
          @answers.fetch([question, stat.size, stat.mtime], &work)
        rescue SystemCallError => e
          raise Error, "cannot read #{@path}: #{Output.reason(e)}"
        end

        # A point covers the time since the previous one.
        def cut_up(points)
          each = [points.last[:ms].fdiv(PARTS), 1e-3].max
          parts = Array.new(PARTS) { { live: 0, rss: 0, calls: 0.0 } }
          before = { ms: 0, allocations: 0 }
          points.each do |point|
            count(parts, before, point, each)
            before = point
          end
          parts.each { |part| part[:calls] = part[:calls].round }
        end

        def count(parts, before, point, each)
          first, last = [before, point].map { |one| (one[:ms] / each).floor.clamp(0, PARTS - 1) }
          calls = (point[:allocations] - before[:allocations]).fdiv(last - first + 1)
          parts[first..last].each do |part|
            part[:live] = [part[:live], point[:live_bytes]].max
            part[:rss] = [part[:rss], point[:rss]].max
            part[:calls] += calls
          end
        end
      end
    end
  end
end
