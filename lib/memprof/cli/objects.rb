# frozen_string_literal: true

require_relative "../folded_path"
require_relative "../wording"

module Memprof
  module CLI
    # Objects of an answer as rows.
    module Objects
      class << self
        def listing(objects, extra: nil)
          listing = Listing.new.columns(:retained).columns(:percent, :size, spare: true)
          listing.columns(extra, from: :value) if extra
          listing.columns(:object, from: :text, most: 60).columns(:address).columns(:site, spare: true)
            .rows(objects)
        end

        def references(references, kind: :name)
          Listing.new.columns(:label, kind: kind).columns(:object, from: :text, most: 60)
            .columns(:retained, :address).columns(:site, spare: true)
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
          Listing.new.columns(:retained, :percent)
            .columns(:procs, as: :count)
            .columns(:defined_at, as: :site) { |row| row.slice(:file, :line) if row[:file] }
            .columns(:captured, most: 44) { |row| captures(row) }
            .columns(:retained_by, as: :path, most: 60) do |row|
              row[:retained_by] && Wording.phrase(row[:retained_by])
            end
            .columns(:example, as: :address, spare: true) { |row| row[:example][:address] }
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
