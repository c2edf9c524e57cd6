# frozen_string_literal: true

require "json"
require_relative "log/entry"

module Memprof
  class Trace
    # The requests of a file that Memprof::Tracer or Memprof.trace_filename= wrote, also one of memprof
    # 0.3. Lines that are no requests are passed over and counted.
    class Log
      attr_reader :entries
      attr_reader :broken
      attr_reader :first_broken

      def self.read(io)
        log = new
        io.each_line.with_index(1) { |line, number| log.add(line, number) }
        log
      end

      def initialize
        @entries = []
        @broken = 0
      end

      def add(line, number)
        text = line.dup.force_encoding(Encoding::UTF_8).scrub
        return if text.strip.empty?

        record = JSON.parse(text)
        raise JSON::ParserError, "no request" unless Entry.of?(record)

        entry = Entry.new(record, number)
        raise JSON::ParserError, "no request" unless entry.possible?

        @entries << entry
      rescue JSON::ParserError
        @broken += 1
        @first_broken ||= number
      end

      def kinds
        @kinds ||= @entries.flat_map { |entry| entry.costs.keys }.uniq
      end

      # What the requests cost, by kind.
      def costs(entries = @entries)
        kinds.filter_map do |kind|
          values = entries.map { |entry| entry.cost(kind) }.sort
          total = values.sum
          next if total.zero?

          { kind: kind, unit: Entry.unit(kind), total: total, mean: total.fdiv(values.size),
            p50: percentile(values, 50), p90: percentile(values, 90), p95: percentile(values, 95),
            p99: percentile(values, 99), max: values.last }
        end
      end

      # The requests in groups, those first that cost most of a kind.
      def groups(by, sort)
        groups = @entries.group_by { |entry| entry.public_send(by) }.map do |name, entries|
          costs = costs(entries)
          { name: name, requests: entries.size, cost: entries.sum { |entry| entry.cost(sort) }, costs: costs }
        end
        groups.sort_by { |group| [-group[:cost], group[:name]] }
      end

      def worst(sort)
        @entries.sort_by { |entry| [-entry.cost(sort), entry.line] }
      end

      private

      # The nearest rank: a value that there was.
      def percentile(sorted, percent)
        sorted[((percent * sorted.size).fdiv(100).ceil - 1).clamp(0, sorted.size - 1)]
      end
    end
  end
end
