# frozen_string_literal: true

module Memprof
  module Testing
    # Runs a block many times and finds the locations whose live malloc bytes grow, by the rules of
    # Memprof.growth. Bytes are exact; RSS is ignored. Ruby objects that the block retains count with their
    # memory outside of slots.
    #
    # The GC after each run counts, too: C extensions and finalizers may leak when they free. If something
    # grows there, an empty block shows how much of it is the GC's own.
    class NativeLeaks
      Grown = Struct.new(:location, :bytes)
      COLLECTION = "(garbage collection)"
      # With a separate file name: allocations of C functions and finalizers during the GC are not memprof's.
      COLLECT = eval("-> { ::GC.start }", nil, COLLECTION, 1)
      private_constant :Grown, :COLLECTION, :COLLECT

      attr_accessor :times, :from
      attr_reader :over, :warmup

      def initialize(over, from: nil, times: 20, warmup: 3)
        @over = ByteSize.read(over)
        @from = from
        @times = times
        @warmup = Testing.check_warmup(warmup)
      end

      def warmup=(runs)
        @warmup = Testing.check_warmup(runs)
      end

      def found?(block)
        unless times.is_a?(Integer) && times >= 4
          raise ArgumentError, "runs must be an Integer of at least 4, not #{times.inspect}"
        end

        grown = growing(series(block))
        grown = without_collector(grown) if grown.any? { |each| collection?(each.location) }
        @grown = grown.sort_by { |each| [-each.bytes, each.location] }
        leaked > over
      end

      def description
        "leak more than #{Units.bytes(over)} of native memory over #{times} runs#{NativeRecording.new(from)}"
      end

      def message(negated: true)
        text = "expected block #{"not " if negated}to #{description}, but #{Units.bytes(leaked)} leaked"
        negated ? "#{text}\n#{table}".chomp : text
      end

      private

      def leaked = @grown.sum(&:bytes)

      # Live bytes of each location after each run.
      def series(block)
        recording = NativeRecording.new(from)
        recording.open do
          warmup.times { run(block) }
          readings = Array.new(times) do
            run(block)
            recording.read(NativeRecording::LIVE_BYTES)
          end
          locations = readings.flat_map(&:keys).uniq
          locations.to_h { |location| [location, readings.map { |reading| reading[location] || 0 }] }
        end
      end

      def run(block)
        Leftovers.run_deep { block.call && nil }
        Leftovers.drop
        COLLECT.call
      end

      def without_collector(grown)
        own = growing(series(-> {})).to_h { |each| [each.location, each.bytes] }
        grown.each { |each| each.bytes -= own[each.location].to_i if collection?(each.location) }
        grown.select { |each| each.bytes.positive? }
      end

      # During GC, a C function that frees an object has no line of its own.
      def collection?(location) = location.start_with?("<internal:gc>", COLLECTION)

      def growing(series)
        series = series.select { |_, bytes| bytes.last > bytes.first }
        fits = Native.fit(series.values)
        series.zip(fits).filter_map do |(location, bytes), (_slope, _low, grows)|
          Grown.new(location, bytes.last - bytes.first) if grows
        end
      end

      def table
        rows = @grown.map do |grown|
          location = collection?(grown.location) ? COLLECTION : grown.location
          [location, Units.bytes(grown.bytes), Units.bytes(grown.bytes / (times - 1))]
        end
        SiteTable.of_locations(Table.new.columns(:leaked, :bytes_per_run, :site), rows)
      end
    end
  end
end
