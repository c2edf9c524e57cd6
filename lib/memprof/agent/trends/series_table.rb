# frozen_string_literal: true

module Memprof
  module Agent
    class Trends
      # The live bytes of the largest sites over the last hours, in bounded memory: a point every five minutes
      # for the last three hours, and one every twenty minutes before that. All series share their times.
      class SeriesTable
        # Points per hour, and how many of them are stored.
        PER_HOUR = 12
        FINE = 36
        COARSE = 60
        # So many points become one when they are older.
        MERGED = 4
        # A new site replaces the smallest one if it has this many times its bytes: sites of similar size
        # would otherwise take turns, and none would have a history.
        LARGER = 1.5
        # Sites with less are not stored.
        LEAST_BYTES = 16 << 10
        # Hours of warm-up that are discounted at least, and at most.
        WARM_UP = [0.5, 16].freeze
        private_constant :FINE, :COARSE, :MERGED, :LARGER, :WARM_UP

        # Live bytes, their standard errors and the sum of bytes times age (nil if ages are unknown) at each
        # time of the table; nil where the site was not observed.
        Series = Struct.new(:bytes, :errors, :ages)

        # Times of the points, how many major GCs there were until then, and how many objects the process had
        # allocated. `settled` is the time after the warm-up; nil before that.
        attr_reader :times, :majors, :allocated, :settled

        def initialize(sites: 256, hour: 3600.0)
          @most = sites
          @hour = hour
          @step = hour / PER_HOUR
          clear
        end

        # Sites as `[file, line, class]` and their {Series}.
        attr_reader :series

        def clear
          @times = []
          @majors = []
          @allocated = []
          @collected = 0
          @series = {}
          @coarse = 0
          @began = @ended = @started = @missed = @settled = nil
          forget_sums
        end

        # Adds what was alive at `time`, the end of an interval: bytes, variance and the sum of bytes times
        # age by site. `allocated` is the number of objects that the process has allocated since it started.
        # Returns true if that completed a point. A gap or a clock that jumped begins all series anew.
        def add(time, live, interval = @step, majors: 0, allocated: 0)
          clear if @ended && (time <= @ended || time - @ended > [@step, interval].max * 3)
          @ended = time
          @started ||= time
          @began ||= time
          @missed ||= allocated
          @settled ||= time if settled?(time, allocated)
          @collected += majors
          @work += allocated
          collect(live)
          return false if time - @began < @step * 0.999

          complete
          @began = time
          true
        end

        private

        # An agent that starts late does not know the objects that were allocated before. When they are
        # replaced, as in a cache that is full, those that it does know seem to grow in number. So the warm-up
        # lasts until it has observed as many allocations as it missed.
        def settled?(time, allocated)
          hours = (time - @started) / @hour
          hours >= WARM_UP.first && (allocated >= 2 * @missed || hours >= WARM_UP.last)
        end

        def forget_sums
          @sums = Hash.new { |hash, key| hash[key] = [0.0, 0.0, 0.0] }
          @ages = true
          @count = 0
          @moment = 0.0
          @work = 0.0
        end

        # Known sites, and the largest of the others.
        def collect(live)
          @count += 1
          @moment += @ended
          others = []
          live.each do |key, amounts|
            @series.key?(key) || @sums.key?(key) ? sum(key, amounts) : others << [key, amounts]
          end
          others = others.max_by(@most) { |_, (bytes, *)| bytes } if others.size > @most
          others.each { |key, amounts| sum(key, amounts) if room_for_sum? }
        end

        def room_for_sum? = @sums.size < @most * 3

        def sum(key, (bytes, variance, age))
          sum = @sums[key]
          sum[0] += bytes
          sum[1] += variance
          age ? sum[2] += age : @ages = false
        end

        def complete
          means = @sums.transform_values { |amounts| amounts.map { |amount| amount / @count } }
          @series.each { |key, series| append(series, means.delete(key) || [0.0, 0.0, 0.0]) }
          @times << @moment / @count
          @majors << @collected.to_f
          @allocated << @work / @count
          means.select! { |_, (bytes, *)| bytes >= LEAST_BYTES }
          means.sort_by { |_, (bytes, *)| -bytes }.each { |key, amounts| admit(key, amounts) || break }
          merge if @times.size - @coarse > FINE
          forget_sums
        end

        def append(series, (bytes, variance, age))
          series.bytes << bytes
          series.errors << Math.sqrt(variance)
          series.ages << (@ages ? age : nil)
        end

        def admit(key, amounts)
          if @series.size >= @most
            smallest, series = @series.min_by { |_, known| known.bytes.last }
            return false if amounts[0] < series.bytes.last * LARGER

            @series.delete(smallest)
          end
          unknown = Array.new(@times.size - 1)
          append(@series[key] = Series.new(unknown, unknown.dup, unknown.dup), amounts)
        end

        # Replaces the oldest fine points by their mean, and drops the oldest coarse one.
        def merge
          [@times, @majors, @allocated, *@series.each_value.flat_map(&:to_a)].each do |column|
            points = column.slice!(@coarse, MERGED)
            column.insert(@coarse, points.all? ? points.sum / MERGED : nil)
            column.shift if @coarse == COARSE
          end
          @coarse = [@coarse + 1, COARSE].min
        end
      end
    end
  end
end
