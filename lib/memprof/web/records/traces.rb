# frozen_string_literal: true

require_relative "../../trace/log"

module Memprof
  class Web
    class Records
      # Traced requests, and what was asked of them: a file is read once and does not change.
      #
      # @api private
      class Traces
        # How many parts the time is cut into for a picture.
        PARTS = 120
        # Parts of the time that are kept: who looks for one asks a few times for the same.
        KEPT = 4
        private_constant :PARTS, :KEPT

        # @return [Memprof::Trace::Log]
        attr_reader :log

        # @param io [IO]
        # @return [Traces]
        # @raise [Memprof::Error] if it has no requests
        def self.read(io)
          log = Memprof::Trace::Log.read(io)
          raise Error, "there is no traced request in the file" if log.entries.empty?

          new(log)
        end

        # @param log [Memprof::Trace::Log]
        def initialize(log)
          @log = log
          @lock = Mutex.new
          @answers = {}
          @within = {}
        end

        # @return [Array<Hash>] see Trace::Log#costs
        def costs = once(:costs) { @log.costs }

        # @param by [Symbol]
        # @param sort [String]
        # @return [Array<Hash>] see Trace::Log#groups
        def groups(by, sort) = once([by, sort]) { @log.groups(by, sort) }

        # @param sort [String]
        # @return [Array<Trace::Log::Entry>] the most costly first
        def worst(sort) = once([:worst, sort]) { @log.worst(sort) }

        # The requests by when they came: equal parts of the time, each with how many came and the most that
        # one cost.
        #
        # @param sort [String] a kind of cost
        # @return [Hash{Symbol => Object}, nil] `:from`, `:seconds` (of a part), `:parts` of `:requests`,
        #   `:max` and `:line` (of the request that cost most); nil if it is not known when they came
        def timeline(sort) = once([:timeline, sort]) { cut_up(sort) }

        # @return [Float, nil] seconds from the first request to the last; nil if it is not known when they
        #   came
        def duration
          first, last = period
          first && (last - first).to_f
        end

        # @return [Array(Time, Time), nil] when the first request came, and the last
        def period
          once(:period) do
            period = @log.entries.filter_map(&:start).minmax
            period if period.all?
          end
        end

        # The requests of a part of the time.
        #
        # @param from [Float] seconds after the first request
        # @param to [Float, nil] the end if nil
        # @return [Traces] those that came then, both ends included
        def within(from, to)
          first, = period
          @lock.synchronize do
            part = @within.delete([from, to]) || Traces.new(part_of(first, from, to))
            @within.shift if @within.size >= KEPT
            @within[[from, to]] = part
          end
        end

        # @param line [Integer] in the file
        # @return [Trace::Log::Entry, nil]
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
