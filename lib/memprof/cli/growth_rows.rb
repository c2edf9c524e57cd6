# frozen_string_literal: true

require_relative "../wording"

module Memprof
  module CLI
    # Lays out the changes between dumps.
    module GrowthRows
      class << self
        def sentences(totals)
          sentences = ["New: #{sum(totals[:new])}. Freed: #{sum(totals[:gone])}.",
            "Surviving: #{Units.objects(totals[:kept][:count])}, #{Cell.text(totals[:grown], :growth)}."]
          if totals[:survived]
            survived, temporary = totals.values_at(:survived, :temporary).map { |part| sum(part) }
            sentences << "New and survived: #{survived}. New and temporary: #{temporary}."
          end
          garbage = totals[:unreachable]
          sentences << "New and garbage: #{sum(garbage)}." if garbage[:count].positive?
          sentences
        end

        def listing(rows, three:, unrelated: false)
          changes = unrelated ? {} : { new: "New", gone: "Freed" }
          changes[:survived] = "Survived" if three && !unrelated
          changes[:garbage] = "Garbage" if !unrelated && rows.any? { |row| row[:garbage][:count].positive? }
          # Uncollected garbage is not growth.
          listing = Listing.new.column("Growth", :growth, :growth) { |row| row[:reachable][:size] }
            .column("Objects", :more, :objects) { |row| row[:reachable][:count] }
          changes.each do |key, heading|
            listing.column(heading, :count, key, spare: %i[gone garbage].include?(key)) do |row|
              row[key]&.fetch(:count)
            end
          end
          listing.column("Retained by new", :bytes, :retained) unless unrelated
          listing.column("Before", :bytes, :before, spare: !unrelated) { |row| row[:before][:size] }
            .column("After", :bytes, :after, spare: !unrelated) { |row| row[:after][:size] }
            .column("Over the dumps", :series, :series) { |row| row[:series]&.map { |change| change[:size] } }
            .column(heading(rows), place?(rows) ? :place : :name, :key) { |row| key(row) }
            .rows(rows)
        end

        def owners(owners)
          Listing.new.column("Retained by new", :bytes, :retained, from: :retained_by_new)
            .column("New", :count, :new) { |owner| owner[:new][:count] }
            .column("Survived", :count, :survived) { |owner| owner[:survived]&.fetch(:count) }
            .column("Class", :name, :class) { |owner| owner[:classes].first&.fetch(:class) }
            .column("Retained by", :name, :holder, most: 70) { |owner| holder(owner) }
            .column("Address", :address, :address)
            .rows(owners)
        end

        private

        def sum(sum) = Wording.sum(sum)

        def key(row)
          return { file: row[:file], line: row[:line] } if row.key?(:line) && row[:file]

          row[:class] || row[:type] || row[:file] || "(unknown)"
        end

        def heading(rows)
          first = rows.first || {}
          headings = { line: "Allocated at", file: "File", type: "Type" }
          headings.find { |key, _| first.key?(key) }&.last || "Class"
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
