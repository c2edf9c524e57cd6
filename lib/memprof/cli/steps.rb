# frozen_string_literal: true

require_relative "listing"

module Memprof
  module CLI
    # A path from a root to an object, as rows: the referrer is above each object.
    module Steps
      def self.listing(path)
        listing = Listing.new.column("Reference", :label, :label).column("Object", :name, :object, most: 60)
          .column("Retained size", :bytes, :retained).column("Address", :address, :address)
          .column("Allocated at", :place, :site, spare: true)
        steps = path[:steps]
        omitted = path[:omitted].to_i
        steps.each_with_index do |step, index|
          if omitted.positive? && index == steps.size / 2
            listing.row(nil, "... #{Units.count(omitted)} more ...", nil, nil, nil)
          end
          root = step[:address].nil?
          listing.row(step[:label], step[:text], root ? nil : step[:retained], step[:address], step[:site])
        end
        listing
      end
    end
  end
end
