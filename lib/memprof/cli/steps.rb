# frozen_string_literal: true

require_relative "listing"
require_relative "../paths"

module Memprof
  module CLI
    # A path from a root to an object, as rows: what refers to it is above each object.
    #
    # @api private
    module Steps
      # A path of a file in a sentence.
      FILE = %r{(?<=\s)/[^\s:]+(?=:\d)}
      private_constant :FILE

      # @param path [Hash] of an answer
      # @return [Listing]
      def self.listing(path)
        listing = Listing.new.column("Reference", :label, :label).column("Object", :name, :object, most: 60)
          .column("Retained", :bytes, :retained).column("Address", :address, :address)
          .column("Made at", :place, :site, spare: true)
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

      # @param sentence [String] of an answer
      # @return [String] the same, with paths as memprof's own tables have them
      def self.shorten(sentence)
        sentence.gsub(FILE) { |path| Paths.short(path) }
      end
    end
  end
end
