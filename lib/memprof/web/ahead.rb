# frozen_string_literal: true

module Memprof
  class Web
    # Asks what will be asked first, while nobody waits: heaps keep their answers, and what many answers need
    # is made for the first of them.
    class Ahead
      # Pages whose first answer takes longest.
      PAGES = %i[Tree Flame].freeze
      # What two or three heaps are called where they are compared.
      COMPARED = %w[a b c].freeze
      # Seconds for a heap to open.
      PATIENCE = 3600
      private_constant :PAGES, :COMPARED, :PATIENCE

      def initialize(heaps)
        @heaps = heaps
      end

      # First what the overview shows: somebody waits for that.
      def look(entry)
        Pages::Overview.prepare(@heaps, entry)
        PAGES.each { |name| Pages.const_get(name).new(@heaps, { heap: entry.id.to_s }).data }
        compare if @heaps.count.between?(2, COMPARED.size)
      end

      private

      def compare
        entries = @heaps.to_a
        @heaps.using(*entries) do
          entries.each { |entry| entry.heap(patience: PATIENCE) }
          Pages::Diff.new(@heaps, {}, COMPARED.zip(entries.map { |entry| entry.id.to_s }).to_h.compact).data
        end
      end
    end
  end
end
