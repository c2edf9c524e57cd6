# frozen_string_literal: true

require_relative "ranked"

module Memprof
  module Malloc
    class Recording
      # The changes by location between two recordings, of a program before and after a change to its code.
      # Returned by {Recording#compare}.
      #
      # @example
      #   Memprof::Malloc.record("before.malloc") { "x" * 10_000 }
      #   Memprof::Malloc.record("after.malloc") { "x" * 500_000 }
      #   before, after = %w[before.malloc after.malloc].map { |path| Memprof::Malloc::Recording.new(path) }
      #   changes = before.compare(after).to_h[:locations].map { |row| row[:change][:allocated_bytes] }
      #   changes.sum >= 400_000 # => true
      class Comparison
        include Ranked

        # The compared values, in words.
        TABLES = {
          peak_bytes: ["Live at the peak", :bytes], leaked_bytes: ["Live at the end", :bytes],
          allocated_bytes: ["Allocated", :bytes], allocations: ["Calls", :count]
        }.freeze
        COUNTS = %i[allocations allocated_bytes temporary peak_bytes leaked leaked_bytes].freeze
        NONE = COUNTS.to_h { |key| [key, 0] }.freeze
        private_constant :TABLES, :COUNTS, :NONE

        # @param before [Recording]
        # @param after [Recording]
        # @example
        #   Memprof::Malloc.record("import.malloc") { "x" * 10_000 }
        #   recording = Memprof::Malloc::Recording.new("import.malloc")
        #   Memprof::Malloc::Recording::Comparison.new(recording, recording)
        def initialize(before, after)
          @before = before.to_h
          @after = after.to_h
        end

        # - `:total`: `:before`, `:after` and `:change`, each with the numbers of {Recording#to_h}'s `:total`;
        # - `:locations`: the same for each `:location` that changed, in no particular order;
        # - `:sample`: `:before` and `:after`, nil or bytes between samples: numbers are estimates then.
        #
        # @return [Hash{Symbol => Object}]
        # @example
        #   Memprof::Malloc.record("import.malloc") { "x" * 10_000 }
        #   recording = Memprof::Malloc::Recording.new("import.malloc")
        #   recording.compare(recording).to_h[:locations] # => []
        def to_h
          @to_h ||= { total: changed(@before[:total], @after[:total]), locations: locations,
                      sample: { before: @before[:sample], after: @after[:sample] } }
        end

        # @return [String] the same as a JSON document
        # @example
        #   Memprof::Malloc.record("import.malloc") { "x" * 10_000 }
        #   recording = Memprof::Malloc::Recording.new("import.malloc")
        #   puts recording.compare(recording).to_json
        def to_json(*) = JSON.generate(to_h)

        # Tables for people: the largest changes at the peak, at the end, in bytes allocated and in calls.
        #
        # @param limit [Integer] rows per table
        # @param color [Boolean]
        # @return [String]
        # @example
        #   Memprof::Malloc.record("import.malloc") { "x" * 10_000 }
        #   recording = Memprof::Malloc::Recording.new("import.malloc")
        #   puts recording.compare(recording).to_s
        def to_s(limit: 10, color: false)
          paint = Paint.new(color)
          totals = Table.new.name("").columns(:change, :before, :after)
          TABLES.each { |key, (name, unit)| totals.row(name, *numbers(to_h[:total], key, unit)) }
          tables = TABLES.map { |key, (name, unit)| ranking(key, name, unit, limit, paint) }
          ["#{estimates}#{totals.to_text(paint)}", *tables.compact].join("\n")
        end

        private

        def estimates
          before, after = to_h[:sample].values_at(:before, :after).map { |sample| Units.sampled(sample) }
          return "Both #{before}\n" if before && before == after

          [before && "Before: #{before}\n", after && "After: #{after}\n"].join
        end

        def locations
          before, after = [@before, @after].map { |one| one[:locations].to_h { |row| [row[:location], row] } }
          rows = (before.keys | after.keys).map do |location|
            { location: location, **changed(before.fetch(location, NONE), after.fetch(location, NONE)) }
          end
          rows.reject { |row| row[:change].values.all?(&:zero?) }
        end

        def changed(before, after)
          before, after = [before, after].map { |row| row.slice(*COUNTS) }
          { before: before, after: after, change: COUNTS.to_h { |key| [key, after[key] - before[key]] } }
        end

        def ranking(key, name, unit, limit, paint)
          rows = to_h[:locations].reject { |row| row[:change][key].zero? }
          return if rows.empty?

          table = Table.new.number("Change, #{name.downcase}", style: :red).columns(:before, :after)
            .columns(:site, style: :cyan)
          rows = rows.sort_by { |row| [-row[:change][key].abs, row[:location]] }
          ranked(rows, table, limit, paint) { |row| [*numbers(row, key, unit), short(row[:location])] }
        end

        def numbers(row, key, unit)
          counts = row.values_at(:change, :before, :after).map { |part| part[key] }
          change, *others = counts.map { |count| Units.public_send(unit, count) }
          ["#{"+" if counts.first.positive?}#{change}", *others]
        end
      end
    end
  end
end
