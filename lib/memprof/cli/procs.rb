# frozen_string_literal: true

require_relative "listing"
require_relative "phrase"

module Memprof
  module CLI
    # Procs by the place of their block, as rows.
    module Procs
      class << self
        def listing(rows)
          listing = Listing.new.column("Retained size", :bytes, :retained)
            .column("Retained %", :percent, :percent)
            .column("Procs", :count, :count).column("Block", :place, :site)
            .column("Captured", :name, :captured, most: 44)
            .column("Retained by", :name, :path, most: 60).column("Example", :address, :address, spare: true)
          rows.each { |row| listing.row(*row.values_at(:retained, :percent, :count), *words(row)) }
          listing
        end

        private

        def words(row)
          captures = row[:captures].map do |capture|
            "#{capture[:label].delete_prefix("local ")}: #{capture[:class]}"
          end
          site = row[:file] && row.slice(:file, :line)
          retained_by = row[:retained_by] && Phrase.text(row[:retained_by])
          [site, captures.join(", "), retained_by, row[:example][:address]]
        end
      end
    end
  end
end
