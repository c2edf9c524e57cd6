# frozen_string_literal: true

module Memprof
  class Web
    # Asks the first questions in advance: heaps cache their answers, and the first one computes what many
    # others need.
    class Prefetch
      # Pages whose first answer takes longest.
      PAGES = %i[Tree Flame].freeze
      # Seconds for a heap to open.
      PATIENCE = 3600
      private_constant :PAGES, :PATIENCE

      def initialize(heaps)
        @heaps = heaps
      end

      # The page that the user waits for comes first.
      def run(entry)
        compare if @heaps.count.between?(2, @heaps.max_open)
        Pages::Overview.prepare(@heaps, entry)
        PAGES.each { |name| Pages.const_get(name).new(@heaps, { heap: entry.id.to_s }).data }
      end

      private

      def compare
        entries = @heaps.to_a
        @heaps.using(*entries) do
          entries.each { |entry| entry.heap(patience: PATIENCE) }
          @heaps.verdict(entries)
        end
      end
    end
  end
end
