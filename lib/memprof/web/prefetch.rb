# frozen_string_literal: true

module Memprof
  class Web
    # Asks the first questions in advance: heaps cache their answers, and the first one computes what many
    # others need.
    class Prefetch
      # Pages whose first answer takes longest.
      PAGES = %i[Tree Flame].freeze
      # Parameters of a comparison.
      COMPARED = %w[a b c].freeze
      # Seconds for a heap to open.
      PATIENCE = 3600
      private_constant :PAGES, :COMPARED, :PATIENCE

      def initialize(heaps)
        @heaps = heaps
      end

      # The overview first: somebody waits for it.
      def run(entry)
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
