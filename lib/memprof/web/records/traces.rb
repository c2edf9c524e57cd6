# frozen_string_literal: true

require "json"
require_relative "../../native"
require_relative "../answers"

module Memprof
  class Web
    class Records
      # Traced requests, and what was asked of them: a file is read once and does not change.
      class Traces
        PARTS = 120 # of the time in a picture
        # Answers that are kept: a page asks the same again when one looks at its next rows.
        KEPT = 20
        DEEPEST = 90 # JSON.generate takes 100, and a page has its own levels
        private_constant :PARTS, :KEPT, :DEEPEST

        # A moment of an answer as pages show it.
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

        # How many requests are in a part of the time: `within` is from and to, in seconds after the first.
        def count(within) = ask(:facts, within: within)[:requests]

        def costs(within = nil) = ask(:costs, within: within)

        def groups(within, by, sort, limit) = ask(:groups, within: within, by: by, sort: sort, limit: limit)

        def worst(sort, within: nil, by: "action", only: nil, limit: @size, offset: 0)
          ask(:worst, within: within, by: by, only: only, sort: sort, limit: limit, offset: offset)
        end

        # SQL statements by text and caller: the repeated ones first, then those that took longest.
        def statements(limit, within: nil) = ask(:statements, within: within, limit: limit)

        # Lines that allocate, by location and class: those with most objects first.
        def allocations(limit, within: nil) = ask(:allocations, within: within, limit: limit)

        # The requests by when they came: equal parts of the time, each with how many came and the most that
        # one cost.
        def timeline(sort) = ask(:timeline, sort: sort, parts: PARTS)

        # One request, by its line; nil if that is none.
        def at(line) = line&.between?(1, 1 << 62) ? ask(:request, line: line) : nil

        # All that the file says of it, unless that is nested too deeply to be shown.
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
