# frozen_string_literal: true

require_relative "../../trace/log"

module Memprof
  class Web
    class Records
      # Traced requests, and what was asked of them: a file is read once and does not change.
      class Traces
        # How many parts the time is cut into for a picture.
        PARTS = 120
        # Parts of the time that are kept: who looks for one asks a few times for the same.
        KEPT = 4
        private_constant :PARTS, :KEPT

        attr_reader :log

        def self.read(io)
          log = Memprof::Trace::Log.read(io)
          raise Error, "no traced requests in the file" if log.entries.empty?

          new(log)
        end

        def initialize(log)
          @log = log
          @lock = Mutex.new
          @answers = {}
          @within = {}
        end

        def costs = once(:costs) { @log.costs }

        def groups(by, sort) = once([by, sort]) { @log.groups(by, sort) }

        def worst(sort) = once([:worst, sort]) { @log.worst(sort) }

        # The requests by when they came: equal parts of the time, each with how many came and the most that
        # one cost.
        def timeline(sort) = once([:timeline, sort]) { cut_up(sort) }

        def duration
          first, last = period
          first && (last - first).to_f
        end

        def period
          once(:period) do
            period = @log.entries.filter_map(&:start).minmax
            period if period.all?
          end
        end

        # The requests of a part of the time.
        def within(from, to)
          first, = period
          @lock.synchronize do
            part = @within.delete([from, to]) || Traces.new(part_of(first, from, to))
            @within.shift if @within.size >= KEPT
            @within[[from, to]] = part
          end
        end

        def at(line) = once(:by_line) { @log.entries.to_h { |entry| [entry.line, entry] } }[line]

        private

        def once(key)
          @lock.synchronize { @answers.key?(key) ? @answers[key] : @answers[key] = yield }
        end

        def part_of(first, from, to)
          chosen = @log.entries.select do |entry|
            entry.start && (entry.start - first).to_f.between?(from, to || Float::INFINITY)
          end
          Memprof::Trace::Log.new.tap { |log| log.entries.concat(chosen) }
        end

        def cut_up(sort)
          dated = @log.entries.select(&:start)
          return if dated.empty?

          from, to = dated.map(&:start).minmax
          each = [(to - from).to_f / PARTS, 1e-6].max
          parts = Array.new(PARTS) { { requests: 0, max: 0, line: nil } }
          dated.each { |entry|
            count(parts[[((entry.start - from) / each).floor, PARTS - 1].min], entry, sort)
          }
          { from: from, seconds: each, parts: parts }
        end

        def count(part, entry, sort)
          part[:requests] += 1
          cost = entry.cost(sort)
          part.update(max: cost, line: entry.line) if part[:line].nil? || cost > part[:max]
        end
      end
    end
  end
end
