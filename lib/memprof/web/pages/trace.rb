# frozen_string_literal: true

require_relative "../record_page"

module Memprof
  class Web
    module Pages
      # `/traces/1`: what traced requests cost. `sort` is a kind of cost, `by` what they are put together by,
      # `only` the name of one group, `from` and `to` a part of the time, in seconds after the first.
      class Trace < RecordPage
        at "/traces/:id"
        about :trace

        BY = %w[action path status].freeze
        GROUPS = 25
        EACH = 50
        private_constant :GROUPS

        def title = record.name

        def scripts = ["timeline.js"]

        def data
          log = content.log
          groups = wanted.groups(by.to_sym, sort)
          {
            requests: log.entries.size, broken: log.broken, **period, duration: content.duration,
            range: range && { from: range[0], to: range[1], requests: wanted.log.entries.size },
            kinds: log.kinds, costs: wanted.costs, groups: groups.first(limit),
            more_groups: [groups.size - limit, 0].max, **worst, timeline: timeline
          }
        end

        def sort = word(:sort, content.log.kinds, "time")

        def by = word(:by, BY, "action")

        def number = whole(:page, 1)

        def range
          from = seconds(:from)
          to = seconds(:to)
          return unless from || to
          raise BadRequest, "to must be at least from" if to && to < from.to_f
          raise BadRequest, "these requests have no start times" unless content.period

          [from || 0.0, to]
        end

        private

        def limit = whole(:groups, GROUPS)

        # What came in the part of the time that is wanted.
        def wanted
          @wanted ||= range ? content.within(*range) : content
        end

        def seconds(name)
          value = text(name) or return
          number = Float(value, exception: false)
          return number if number&.between?(0, Float::MAX)

          raise BadRequest, "invalid #{name} #{value.inspect}; expected seconds after the first request"
        end

        def worst
          chosen = wanted.worst(sort)
          chosen = chosen.select { |entry| entry.public_send(by) == text(:only) } if text(:only)
          rows = existing(chosen.drop((number - 1) * EACH).first(EACH), number)
          { chosen: chosen.size, worst: rows.map { |entry| row(entry) } }
        end

        def row(entry)
          { line: entry.line, action: entry.action, path: entry.path, status: entry.status,
            start: stamp(entry.start), costs: entry.costs }
        end

        def period
          from, to = content.period
          { from: stamp(from), to: stamp(to) }
        end

        def timeline
          line = content.timeline(sort) or return
          line.merge(from: stamp(line[:from]))
        end

        def stamp(time) = time&.utc&.strftime("%F %T.%3N UTC")
      end
    end
  end
end
