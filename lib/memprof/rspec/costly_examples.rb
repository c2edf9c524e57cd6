# frozen_string_literal: true

module Memprof
  module RSpec
    # Lists the examples that allocate and retain most at the end of a run with MEMPROF_SPEC=1. An example
    # retains the objects that it or its hooks allocated and that are still alive after it and a full GC.
    class CostlyExamples
      # The cost of an example, in objects and bytes.
      Cost = Struct.new(:location, :description, :allocated, :retained)
      EVENTS = %i[example_started example_finished dump_summary].freeze
      LIMIT = 10
      VARIABLE = "MEMPROF_SPEC"
      private_constant :Cost, :EVENTS, :LIMIT, :VARIABLE

      # Lists the examples of a run, if the environment asks for it.
      def self.install(config, env = ENV)
        limit = limit(env[VARIABLE].to_s)
        return unless limit

        # Not earlier: config.reporter would create one without the command line's formatters.
        config.before(:suite) { CostlyExamples.new(limit).listen(config.reporter) }
      end

      # The number of examples to list, or nil.
      def self.limit(text)
        return if ["", "0"].include?(text)
        return LIMIT if text == "1"

        number = Integer(text, 10, exception: false)
        return number if number&.positive?

        raise ArgumentError, "invalid #{VARIABLE} \"#{text}\"; expected 1, or a number of examples"
      end

      def initialize(limit)
        @limit = limit
        @costs = []
      end

      def listen(reporter)
        @reporter = reporter
        reporter.register_listener(self, *EVENTS)
      end

      def example_started(_notification)
        @session = Session.prepare
        @session.open
      end

      def example_finished(notification)
        return unless @session

        @session.finish
        @session.collect
        rows = @session.counts(retained: true)
        example = notification.example
        @costs << Cost.new(example.location, example.full_description, *[2, 3].map { |part| sum(rows, part) })
      ensure
        @session&.close
        @session = nil
      end

      # As a message: it appears in the formatter's output, or in its JSON.
      def dump_summary(_notification)
        tables = { allocated: "allocate", retained: "retain" }.filter_map { |kind, verb| table(kind, verb) }
        @reporter.message("\n#{tables.join("\n")}") unless tables.empty?
      end

      private

      # Objects and bytes. The VM's inline caches do not count for any example.
      def sum(rows, part)
        rows.each_with_object([0, 0]) do |row, sum|
          next if row[1][2].start_with?("<")

          objects, bytes = row[part]
          sum[0] += objects
          sum[1] += bytes
        end
      end

      def table(kind, verb)
        costs = @costs.select { |cost| cost[kind].first.positive? }
        return if costs.empty?

        most = costs.sort_by.with_index { |cost, index| [-cost[kind].last, index] }.first(@limit)
        table = Table.new.columns(kind == :retained ? :retained_bytes : :allocated)
          .columns(:count, :test, :defined_at)
        most.each do |cost|
          objects, bytes = cost[kind]
          description = Printable.fit(cost.description, 60)
          table.row(Units.bytes(bytes), Units.count(objects), description, cost.location)
        end
        shown = "#{Units.count(most.size)} of #{Units.count(costs.size)}"
        "Examples that #{verb} most (#{shown}):\n#{table.to_text}"
      end
    end
  end
end
