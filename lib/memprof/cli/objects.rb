# frozen_string_literal: true

require_relative "listing"
require_relative "../folded_path"
require_relative "../wording"

module Memprof
  module CLI
    # Objects of an answer as rows.
    module Objects
      class << self
        def listing(objects, extra: nil)
          heading, name, key = extra
          listing = Listing.new.column("Retained size", :bytes, :retained)
            .column("Retained %", :percent, :percent, spare: true)
            .column("Shallow size", :bytes, :size, spare: true)
          listing.column(heading, :count, name) if extra
          listing.column("Object", :name, :object, most: 60).column("Address", :address, :address)
            .column("Allocated at", :place, :site, spare: true)
          keys = [:retained, :percent, :size, key, :text, :address, :site].compact
          objects.each { |object| listing.row(*object.values_at(*keys)) }
          listing
        end

        def references(references, kind: :name)
          listing = Listing.new.column("Reference", kind, :label).column("Object", :name, :object, most: 60)
            .column("Retained size", :bytes, :retained).column("Address", :address, :address)
            .column("Allocated at", :place, :site, spare: true)
          references.each { |other| listing.row(*other.values_at(:label, :text, :retained, :address, :site)) }
          listing
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
          listing = Listing.new.column("Retained size", :bytes, :retained)
            .column("Retained %", :percent, :percent)
            .column("Procs", :count, :count).column("Block", :place, :site)
            .column("Captured", :name, :captured, most: 44)
            .column("Retained by", :name, :path, most: 60).column("Example", :address, :address, spare: true)
          rows.each { |row| listing.row(*row.values_at(:retained, :percent, :count), *proc_words(row)) }
          listing
        end

        private

        def left_out(gap)
          like = gap[:like] || {}
          text = ["...", Units.count(gap[:omitted]), "more", *like[:class], "..."].join(" ")
          { label: like[:label], text: text }
        end

        def proc_words(row)
          captures = row[:captures].map do |capture|
            "#{capture[:label].delete_prefix("local ")}: #{capture[:class]}"
          end
          site = row[:file] && row.slice(:file, :line)
          retained_by = row[:retained_by] && Wording.phrase(row[:retained_by])
          [site, captures.join(", "), retained_by, row[:example][:address]]
        end
      end
    end
  end
end
