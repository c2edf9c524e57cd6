# frozen_string_literal: true

require_relative "caller"

module Memprof
  module Tracers
    class Sql < Client
      # The statements of a trace by text and caller.
      class Statements
        # Maximum number of listed statements; the rest is summed up.
        LISTED = 50
        # Maximum number of caller lookups per trace.
        LOOKUPS = 200
        # From this count on, a caller's identical statements count as an N+1 query.
        REPEATED = 5
        # For statements prepared before any trace began.
        UNKNOWN = "(prepared before the trace)"
        # Statements that count as repeated: not the begin and commit of transactions.
        QUERY = /\A\(*\s*(?:select|insert|update|delete|with|replace|merge|values)\b/i
        private_constant :LISTED, :LOOKUPS, :REPEATED, :QUERY

        # The counts of a statement.
        Row = Struct.new(:queries, :time, :slowest) do
          def self.empty = new(0, 0.0, 0.0)

          def add(seconds)
            self.queries += 1
            more(seconds, seconds)
          end

          # Adds time to a statement whose total time so far is known.
          def more(seconds, whole)
            self.time += seconds
            self.slowest = whole if whole > slowest
          end

          def numbers = { "queries" => queries, "time" => time }
        end

        # One execution, which may continue: SQLite adds time with each row.
        Execution = Struct.new(:rows, :whole) do
          def more(seconds)
            self.whole += seconds
            rows.each { |row| row.more(seconds, whole) }
          end
        end
        private_constant :Row, :Execution

        def initialize
          @texts = {}
          @total = Row.empty
          @rest = Row.empty
          @listed = @lookups = 0
        end

        def add(text, time)
          rows = [@total, row(text) || @rest]
          rows.each { |row| row.add(time) }
          Execution.new(rows, time)
        end

        # Repeated statements first, then the slowest.
        def report
          return {} if @total.queries.zero?

          report = { **@total.numbers, "statements" => sorted }
          report["rest"] = @rest.numbers if @rest.queries.positive?
          report
        end

        private

        def row(text)
          callers = @texts[text]
          return if callers.nil? && @listed >= LISTED

          caller = caller_of(callers)
          return callers[caller] if callers&.key?(caller)
          return if @listed >= LISTED

          @listed += 1
          (@texts[text] ||= {})[caller] = Row.empty
        end

        # A statement that had only one caller so far was probably sent by it.
        def caller_of(callers)
          return callers&.size == 1 ? callers.each_key.first : nil if @lookups >= LOOKUPS

          @lookups += 1
          Caller.find
        end

        def sorted
          all = @texts.flat_map { |text, callers| callers.map { |caller, row| entry(text, caller, row) } }
          all.sort_by { |entry| [entry.key?("n_plus_one") ? 0 : 1, -entry["time"], entry["sql"]] }
        end

        def entry(text, caller, row)
          entry = { "sql" => text, "caller" => caller, **row.numbers, "slowest" => row.slowest }.compact
          entry["n_plus_one"] = true if caller && row.queries >= REPEATED && text.match?(QUERY)
          entry
        end
      end
      private_constant :Statements
    end
  end
end
