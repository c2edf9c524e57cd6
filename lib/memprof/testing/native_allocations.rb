# frozen_string_literal: true

module Memprof
  module Testing
    # Malloc bytes of a block, by location. GC is disabled while it runs: its own allocations do not count.
    class NativeAllocations
      attr_accessor :from
      attr_reader :limit, :warmup

      def initialize(limit, from: nil, warmup: WARMUP)
        @limit = ByteSize.read(limit)
        @from = from
        self.warmup = warmup
      end

      def warmup=(runs)
        @warmup = Testing.check_warmup(runs)
      end

      def within?(block)
        warmup.times { block.call }
        recording = NativeRecording.new(from)
        before = after = nil
        recording.open do
          GCPause.hold do
            before = recording.read(NativeRecording::BYTES)
            block.call
            after = recording.read(NativeRecording::BYTES)
          end
        end
        @allocated = after.to_h { |location, bytes| [location, bytes - (before[location] || 0)] }
        @allocated.select! { |_, bytes| bytes.positive? }
        @allocated.sum(&:last) <= limit
      end

      def description = "allocate at most #{Units.bytes(limit)} of native memory#{NativeRecording.new(from)}"

      def message(negated: false)
        sum = Units.bytes(@allocated.sum(&:last))
        "expected block #{"not " if negated}to #{description}, but it allocated #{sum}\n#{table}".chomp
      end

      private

      def table
        rows = @allocated.sort_by { |location, bytes| [-bytes, location] }
        rows = rows.map { |location, bytes| [location, Units.bytes(bytes)] }
        SiteTable.of_locations(Table.new.columns(:allocated, :site), rows)
      end
    end
  end
end
