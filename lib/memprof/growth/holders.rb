# frozen_string_literal: true

require_relative "../heap"
require_relative "../wording"

module Memprof
  class Growth
    # What retains the objects of sites that grow, as far as the heap shows it while they are still tracked.
    class Holders
      MOST = 10 # sites, as many as a message has

      # Not known without room for the heap, or beside other Ractors: what grows is known all the same.
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

      # In words, what retains most of them.
      def of(site)
        row = @heap.merged_paths(where: filter(site), limit: 1)[:rows].first
        Wording.phrase(row[:retained_by]) if row
      end

      private

      # The heap has another name for an anonymous class than the site.
      def filter(site)
        return format("address = %#x", site.address) if site.address

        line = "site = #{Heap::QueryText.quoted("#{site.file}:#{site.line}")}"
        return line if site.class_name.start_with?("#<")

        "#{line} and class = #{Heap::QueryText.quoted(site.class_name)}"
      end
    end
  end
end
