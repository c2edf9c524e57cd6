# frozen_string_literal: true

require "memprof/dump"
require "memprof/dump/proc_notes"

module Memprof
  class Web
    class Live
      # Statistics of this process: memory, threads, GC.
      module ProcessStats
        class << self
          def of_process(types: false)
            {
              pid: Process.pid, parent: Process.ppid, program: $PROGRAM_NAME, ruby: RUBY_DESCRIPTION,
              memprof: VERSION, threads: Thread.list.size, rss: Memprof::Dump::ProcNotes.rss, gc: collector,
              types: (by_type if types)
            }
          end

          private

          # Rubies have more and less of these; what one does not have is nil.
          def collector
            stat = GC.stat
            {
              collections: stat[:count], minor: stat[:minor_gc_count], major: stat[:major_gc_count],
              seconds: stat[:time]&.fdiv(1000), live: stat[:heap_live_slots], free: stat[:heap_free_slots],
              pages: stat[:heap_allocated_pages], old: stat[:old_objects],
              allocated: stat[:total_allocated_objects], freed: stat[:total_freed_objects],
              malloc: stat[:malloc_increase_bytes]
            }
          end

          def by_type
            counts = ObjectSpace.count_objects
            types = counts.except(:TOTAL, :FREE).reject { |_, count| count.zero? }
            types.map { |type, count| { type: type.to_s.delete_prefix("T_").downcase, count: count } }
              .sort_by { |row| [-row[:count], row[:type]] }
          end
        end
      end
    end
  end
end
