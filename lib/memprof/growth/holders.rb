# frozen_string_literal: true

require_relative "../heap"
require_relative "../wording"

module Memprof
  class Growth
    # Finds what retains the objects of growing sites in the heap, while they are still tracked.
    class Holders
      MOST = 10 # sites, as many as a message has

      # Unknown if there is no room for the heap, or with other Ractors: the growth is known all the same.
      def self.of(sites)
        heap = Heap.capture
        holders = new(heap)
        sites.to_h { |site| [site, holders.of(site)] }
      rescue Error, SystemCallError
        {}
      end

      def initialize(heap)
        @heap = heap
      end

      # Describes what retains most of them.
      def of(site)
        row = @heap.merged_paths(where: filter(site), limit: 1)[:rows].first
        Wording.phrase(row[:retained_by]) if row
      end

      private

      # The heap names an anonymous class differently than the site.
      def filter(site)
        return format("address = %#x", site.address) if site.address

        line = "site = #{Heap::QueryText.quoted("#{site.file}:#{site.line}")}"
        return line if site.class_name.start_with?("#<")

        "#{line} and class = #{Heap::QueryText.quoted(site.class_name)}"
      end
    end
  end
end
