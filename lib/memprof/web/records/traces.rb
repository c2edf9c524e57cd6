# frozen_string_literal: true

require "json"
require_relative "../../native"
require_relative "../answers"

module Memprof
  class Web
    class Records
      # Traced requests with cached answers: a file is read once and does not change.
      class Traces
        PARTS = 120 # of the time in a picture
        # Number of cached answers: a page asks the same again for its next rows.
        KEPT = 20
        DEEPEST = 90 # JSON.generate takes 100, and a page has its own levels
        private_constant :PARTS, :KEPT, :DEEPEST

        # A time of an answer, formatted for pages.
        def self.stamp(microseconds)
          Time.at(0, microseconds, :microsecond).utc.strftime("%F %T.%3N UTC") if microseconds
        end

        def self.read(io)
          traces = new(Native::RequestLog.open(io.fileno))
          raise Error, "no traced requests in the file" if traces.size.zero?

          traces
        end

        def self.parse(lines) = new(Native::RequestLog.parse(lines.dup.force_encoding(Encoding::UTF_8).scrub))

        attr_reader :size, :broken, :kinds, :period

        def initialize(log)
          @log = log
          @answers = Answers.new(KEPT)
          facts = ask(:facts, within: nil)
          @size, @broken, @kinds, @period = facts.values_at(:requests, :broken, :kinds, :period)
        end

        def duration = @period && (@period[1] - @period[0]) / 1e6

        # Number of requests in a time range: `within` is from and to, in seconds after the first.
        def count(within) = ask(:facts, within: within)[:requests]

        def costs(within = nil) = ask(:costs, within: within)

        def groups(within, by, sort, limit) = ask(:groups, within: within, by: by, sort: sort, limit: limit)

        def worst(sort, within: nil, by: "action", only: nil, limit: @size, offset: 0)
          ask(:worst, within: within, by: by, only: only, sort: sort, limit: limit, offset: offset)
        end

        # SQL statements by text and caller: repeated ones first, then the slowest.
        def statements(limit, within: nil) = ask(:statements, within: within, limit: limit)

        # Lines that allocate, by location and class, most objects first.
        def allocations(limit, within: nil) = ask(:allocations, within: within, limit: limit)

        # The requests over time: equal intervals, each with its number of requests and the highest cost of
        # one.
        def timeline(sort) = ask(:timeline, sort: sort, parts: PARTS)

        # One request, by its line; nil if there is no such line.
        def at(line) = line&.between?(1, 1 << 62) ? ask(:request, line: line) : nil

        # Everything that the file contains about it, unless nested too deeply to be shown.
        def record(line)
          text = @log.line(line)
          JSON.parse(text, max_nesting: DEEPEST) if text
        rescue JSON::NestingError
          nil
        end

        private

        def ask(name, **parameters)
          question = JSON.generate(name => parameters)
          JSON.parse(@answers.fetch(question) { @log.ask(question) }, symbolize_names: true)
        end
      end
    end
  end
end
