# frozen_string_literal: true

module Memprof
  class Web
    module Pages
      # `/traces/1`: the cost of traced requests. `sort` is a kind of cost, `by` the grouping criterion,
      # `only` the name of one group, `from` and `to` a time range, in seconds after the first.
      class TracePage < RecordPage
        at "/traces/:id", assets: %w[timeline.js]

        BY = %w[action path status exception].freeze
        GROUPS = 25
        EACH = 50
        STATEMENTS = 25
        LINES = 25
        private_constant :GROUPS, :STATEMENTS, :LINES

        def data
          groups = content.groups(range, by, sort, limit)
          {
            requests: content.size, broken: content.broken, **period, duration: content.duration,
            range: range && { from: range[0], to: range[1], requests: content.count(range) },
            kinds: content.kinds, costs: content.costs(range), groups: groups[:groups],
            more_groups: groups[:more], **worst, timeline: timeline,
            **content.statements(STATEMENTS, within: range), **content.allocations(LINES, within: range)
          }
        end

        def command = command_line("trace", by: text(:by), sort: text(:sort))

        def sort = choice(:sort, content.kinds, "time")

        def by = choice(:by, BY, "action")

        def each = rows_each(EACH)

        def range
          range = part_of_time("the first request")
          raise BadRequest, "these requests have no start times" if range && !content.period

          range&.values
        end

        private

        def limit = integer(:groups, GROUPS)

        def worst
          answer = content.worst(sort, within: range, by: by, only: text(:only), limit: each,
            offset: (number - 1) * each)
          rows = existing(answer[:requests], number)
          { chosen: answer[:total], worst: rows.map { |row| row.merge(start: stamp(row[:start])) } }
        end

        def period
          from, to = content.period
          { from: stamp(from), to: stamp(to) }
        end

        def timeline
          line = content.timeline(sort) or return
          line.merge(from: stamp(line[:from]))
        end

        def stamp(microseconds) = Records::Traces.stamp(microseconds)
      end

      # `/traces/1/requests/12`: everything known about one request, by its line in the file.
      class TraceRequest < RecordPage
        at "/traces/:id/requests/:line"

        def title = request[:action]

        def command = command_line("trace")

        def data
          { **request.except(:start), requests: content.size, record: content.record(request[:line]) }
        end

        private

        def request
          @request ||= content.at(captured_number(:line)) ||
            raise(NotFound, "line #{captures.fetch(:line)} is not a request")
        end
      end
    end
  end
end
