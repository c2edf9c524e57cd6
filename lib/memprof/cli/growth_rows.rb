# frozen_string_literal: true

require_relative "../wording"

module Memprof
  module CLI
    # Lays out the changes between dumps.
    module GrowthRows
      class << self
        def sentences(totals)
          sentences = ["New: #{sum(totals[:new])}. Freed: #{sum(totals[:gone])}.",
            "In both dumps: #{Units.objects(totals[:kept][:count])}, #{Wording.larger(totals[:grown])}."]
          if totals[:survived]
            survived, temporary = totals.values_at(:survived, :temporary).map { |part| sum(part) }
            sentences << "New and survived: #{survived}. New and freed since: #{temporary}."
          end
          garbage = totals[:unreachable]
          sentences << "New, but already garbage: #{sum(garbage)}." if garbage[:count].positive?
          sentences
        end

        def listing(rows, three:, unrelated: false)
          changes = unrelated ? [] : %i[new gone]
          changes << :survived if three && !unrelated
          changes << :garbage if !unrelated && rows.any? { |row| row[:garbage][:count].positive? }
          # Uncollected garbage is not growth.
          listing = Listing.new.columns(:growth) { |row| row[:reachable][:size] }
            .columns(:count, as: :objects, kind: :more) { |row| row[:reachable][:count] }
          changes.each do |key|
            listing.columns(key, spare: %i[gone garbage].include?(key)) do |row|
              row[key]&.fetch(:count)
            end
          end
          listing.columns(:retained_by_new, as: :retained) unless unrelated
          listing.columns(:before, spare: !unrelated) { |row| row[:before][:size] }
            .columns(:after, spare: !unrelated) { |row| row[:after][:size] }
            .columns(:series) { |row| row[:series]&.map { |change| change[:size] } }
            .columns(fact(rows), as: :key, kind: place?(rows) ? :place : :name) { |row| key(row) }
            .rows(rows)
        end

        def owners(owners)
          Listing.new.columns(:retained_by_new, as: :retained, from: :retained_by_new)
            .columns(:new) { |owner| owner[:new][:count] }
            .columns(:survived) { |owner| owner[:survived]&.fetch(:count) }
            .columns(:class) { |owner| owner[:classes].first&.fetch(:class) }
            .columns(:retained_by, as: :holder, most: 70) { |owner| holder(owner) }
            .columns(:address)
            .rows(owners)
        end

        private

        def sum(sum) = Wording.sum(sum)

        def key(row)
          return { file: row[:file], line: row[:line] } if row.key?(:line) && row[:file]

          row[:class] || row[:type] || row[:file] || "(unknown)"
        end

        def fact(rows)
          first = rows.first || {}
          return :site if first.key?(:line)

          %i[file type].find { |key| first.key?(key) } || :class
        end

        def place?(rows) = (rows.first || {}).key?(:file)

        def holder(owner)
          path = Wording.phrase(owner[:path][:phrase])
          path.empty? ? owner[:text] : path
        end
      end
    end
  end
end
