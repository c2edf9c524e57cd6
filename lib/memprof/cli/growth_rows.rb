# frozen_string_literal: true

require_relative "listing"
require_relative "../wording"
require_relative "../units"

module Memprof
  module CLI
    # What changed between dumps, laid out.
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
          listing = Listing.new.column("Growth", :growth, :growth).column("Objects", :more, :objects)
          spare = %i[gone garbage]
          changes.each { |key, heading| listing.column(heading, :count, key, spare: spare.include?(key)) }
          listing.column("Retained by new", :bytes, :retained) unless unrelated
          listing.column("Before", :bytes, :before, spare: !unrelated)
            .column("After", :bytes, :after, spare: !unrelated)
            .column("Over the dumps", :series, :series)
            .column(heading(rows), place?(rows) ? :place : :name, :key)
          rows.each { |row| listing.row(*cells(row, changes.keys, unrelated)) }
          listing
        end

        def owners(owners)
          listing = Listing.new.column("Retained by new", :bytes, :retained).column("New", :count, :new)
            .column("Survived", :count, :survived).column("Class", :name, :class)
            .column("Retained by", :name, :holder, most: 70).column("Address", :address, :address)
          owners.each do |owner|
            listing.row(owner[:retained_by_new], owner[:new][:count], owner[:survived]&.fetch(:count),
              owner[:classes].first&.fetch(:class), holder(owner), owner[:address])
          end
          listing
        end

        # A sentence for each object that grows.
        def held(owners)
          owners.map do |owner|
            "#{holder(owner)} grew by #{Units.bytes(owner[:growth])}#{new_objects(owner)}." \
              "#{largest(owner)}#{series(owner)}"
          end
        end

        private

        def new_objects(owner)
          new = owner[:new][:count]
          return if new.zero?

          most = owner[:classes].first
          survived = owner[:survived]
          lived = ", #{part(survived[:count], new)} of which survived" if survived
          ": #{Cell.plural(new, "new object")}#{", mostly #{most[:class]}" if most}#{lived}"
        end

        # The name of a root says little.
        def largest(owner)
          return unless owner[:largest]

          " The largest is #{Wording.phrase(owner[:largest][:phrase])}."
        end

        # What it retained in each dump, if there are more of them than a sentence about growth speaks of.
        def series(owner)
          sizes = owner[:series]
          return if sizes.size < 4 || sizes.any?(&:nil?)

          *sizes, last = sizes.map { |size| Units.bytes(size) }
          " It retained #{sizes.join(", ")} and #{last}."
        end

        def part(count, whole) = count.zero? ? "none" : count == whole ? "all" : Units.count(count)

        def sum(sum) = Wording.sum(sum)

        # Garbage that was not collected yet is no growth.
        def cells(row, changes, unrelated)
          series = row[:series]&.map { |change| change[:size] }
          counts = row.values_at(*changes).map { |sum| sum&.fetch(:count) }
          retained = unrelated ? [] : [row[:retained]]
          sizes = [row[:before][:size], row[:after][:size]]
          [row[:reachable][:size], row[:reachable][:count], *counts, *retained, *sizes, series, key(row)]
        end

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
