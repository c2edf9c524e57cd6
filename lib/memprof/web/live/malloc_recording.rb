# frozen_string_literal: true

require_relative "../../native"
require_relative "../../printable"

module Memprof
  class Web
    class Live
      # What the recording of Memprof::Malloc has seen.
      module MallocRecording
        class << self
          # Locations, most first.
          def rows(sort, part: nil)
            Malloc.quiet do
              rows = Native::Malloc.sites.map { |name, counts| row(Printable.utf8(name), *counts) }
              rows.select! { |row| row[:location].include?(part) } if part
              rows.sort_by { |row| [-row[sort], row[:location]] }
            end
          end

          # Live blocks of a location, by size and by the generation in which they were allocated.
          def blocks(location)
            Malloc.quiet do
              found = Malloc[location] or raise NotFound, "no memory was allocated there"
              groups = found.each.to_a.tally
              rows = groups.map do |(size, generation), count|
                { count: count, size: size, bytes: size * count, generation: generation }
              end
              rows.sort_by { |row| [-row[:bytes], -row[:generation]] }
            end
          end

          # Pages of Ruby's heap, by the size of their slots.
          def heap_pages
            Malloc.heap_pages.group_by(&:slot_size).sort.map do |slot_size, pages|
              slots, used = %i[slots used].map { |name| pages.sum(&name) }
              { slot_size: slot_size, pages: pages.size, slots: slots, used: used,
                percent: used * 100.0 / slots }
            end
          end

          private

          def row(location, calls, allocated, frees, _freed, age_total, max_life, blocks, live)
            mean = frees.zero? ? 0.0 : age_total / frees.to_f
            { location: location, live: live, blocks: blocks, allocated: allocated, calls: calls,
              frees: frees, mean_life: mean.round(1), max_life: max_life }
          end
        end
      end
    end
  end
end
