# frozen_string_literal: true

require_relative "listing"

module Memprof
  module CLI
    # Objects of an answer as rows.
    module Objects
      def self.listing(objects, extra: nil)
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

      def self.references(references)
        listing = Listing.new.column("Reference", :name, :label).column("Object", :name, :object, most: 60)
          .column("Retained size", :bytes, :retained).column("Address", :address, :address)
          .column("Allocated at", :place, :site, spare: true)
        references.each { |other| listing.row(*other.values_at(:label, :text, :retained, :address, :site)) }
        listing
      end
    end
  end
end
