# frozen_string_literal: true

require_relative "../folded_path"
require_relative "../wording"

module Memprof
  module CLI
    # Objects of an answer as rows.
    module Objects
      class << self
        def listing(objects, extra: nil)
          heading, name = extra
          listing = Listing.new.column("Retained size", :bytes, :retained)
            .column("Retained %", :percent, :percent, spare: true)
            .column("Shallow size", :bytes, :size, spare: true)
          listing.column(heading, :count, name, from: :value) if extra
          listing.column("Object", :name, :object, from: :text, most: 60)
            .column("Address", :address, :address)
            .column("Allocated at", :place, :site, spare: true)
            .rows(objects)
        end

        def references(references, kind: :name)
          Listing.new.column("Reference", kind, :label)
            .column("Object", :name, :object, from: :text, most: 60)
            .column("Retained size", :bytes, :retained).column("Address", :address, :address)
            .column("Allocated at", :place, :site, spare: true)
            .rows(references)
        end

        # A path from a root to an object: the referrer is above each object.
        def path(path, run: FoldedPath::RUN)
          steps = FoldedPath.of(path, run: run).map do |step|
            next left_out(step) if step[:omitted]

            step[:address] ? step : step.merge(retained: nil)
          end
          references(steps, kind: :label)
        end

        # Procs by the place of their block.
        def procs(rows)
          Listing.new.column("Retained size", :bytes, :retained)
            .column("Retained %", :percent, :percent)
            .column("Procs", :count, :count)
            .column("Block", :place, :site) { |row| row.slice(:file, :line) if row[:file] }
            .column("Captured", :name, :captured, most: 44) { |row| captures(row) }
            .column("Retained by", :name, :path, most: 60) do |row|
              row[:retained_by] && Wording.phrase(row[:retained_by])
            end
            .column("Example", :address, :address, spare: true) { |row| row[:example][:address] }
            .rows(rows)
        end

        private

        def left_out(gap)
          like = gap[:like] || {}
          text = ["...", Units.count(gap[:omitted]), "more", *like[:class], "..."].join(" ")
          { label: like[:label], text: text }
        end

        def captures(row)
          row[:captures].map { |one| "#{one[:label].delete_prefix("local ")}: #{one[:class]}" }.join(", ")
        end
      end
    end
  end
end
