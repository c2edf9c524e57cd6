# frozen_string_literal: true

require_relative "../../native"

module Memprof
  module Agent
    class Trends
      # Whether a site leaks, according to the live bytes of all workers. Estimates add up, so a leak that is
      # too small to be seen in one worker is seen in eight. All of this must hold in a window of hours:
      #
      # 1. The trend of Theil and Sen is positive beyond doubt, has not slowed down and still reaches new
      #    maxima (crates/memprof-profile/src/growth.rs).
      # 2. The gain is larger than six standard errors, those of sampling and the scatter about the line. An
      #    error of sampling lasts as long as the objects do, so averaging does not remove it.
      # 3. Each third of the window gains at least three quarters of its share, and the second half at least
      #    85 % of the first; so does the window compared with the time before it. A cache that fills, a step
      #    and the flank of a day fail here.
      # 4. The objects grow old: in a leak, what was gained is as old as the time since. In a queue, or in a
      #    store of sessions that expire, objects are replaced by younger ones while their number grows.
      # 5. The window begins after the warm-up of the process, and each third of it has a major GC: objects
      #    that are old remain until then, though nothing retains them.
      class Judgement
        # Hours. Without ages only the long windows count.
        WINDOWS = [4, 5, 6, 8, 12, 16, 20].freeze
        WITHOUT_AGES = 6
        WARM_UP = 0.5
        SEGMENTS = 12
        SIGMAS = 6
        # Bytes per hour in all workers.
        LEAST = 1 << 20
        # Shares: of a third's part of the gain, of the rate before, of the age that the gain would have, and
        # of that which all would have.
        THIRD = 0.75
        PACE = 0.85
        GAIN_AGES = 0.75
        ALL_AGES = 0.35
        private_constant :WINDOWS, :WITHOUT_AGES, :WARM_UP, :SEGMENTS, :SIGMAS, :LEAST, :THIRD, :PACE,
          :GAIN_AGES, :ALL_AGES

        # What one worker observed of a site: `started` is when it was first observed by an agent, `times` are
        # those of the {SeriesTable::Series}, and `majors` the number of major GCs until then, nil if unknown.
        Track = Struct.new(:started, :times, :series, :majors)

        # The verdict on a growing site: bytes per hour in all workers with the standard error, hours of
        # growth, and the numbers of workers in which it grows and of all.
        Growth = Struct.new(:rate, :error, :hours, :growing, :workers)

        # The growth in the longest window, or nil. A track without a series is that of a worker that does not
        # have the site.
        def self.of(tracks, now, hour = 3600.0) = new(tracks, now, hour).growth

        # Up to the last point that all of them have.
        def initialize(tracks, now, hour)
          @tracks = tracks.select { |track| track.times.last >= now - hour / 4 }
          @now = @tracks.map { |track| track.times.last }.min
          @hour = hour
        end

        def growth
          return if @tracks.empty? || @tracks.sum { |track| track.series&.bytes&.last || 0 } < LEAST

          WINDOWS.reverse_each do |hours|
            found = within(hours)
            return found if found
          end
          nil
        end

        private

        def within(hours)
          from = @now - hours * @hour
          tracks = @tracks.select { |track| observed?(track, from) }
          return if tracks.empty?

          window = Window.new(tracks, from, @now, SEGMENTS)
          return if window.gain < LEAST * hours || window.gain < SIGMAS * window.error
          return unless window.ages ? ageing?(window) : hours >= WITHOUT_AGES
          return unless steady?(window, tracks, hours) && Native.fit([window.counts]).first.last

          error = window.error / hours
          Growth.new(window.gain / hours, error, hours.to_f, window.growing, @tracks.size)
        end

        def observed?(track, from)
          track.started + WARM_UP * @hour <= from && track.times.first <= from && collected?(track, from)
        end

        def collected?(track, from)
          return true unless track.majors

          ends = Array.new(4) { |third| from + (@now - from) * third / 3 }
          Window.at_times(track.times, track.majors, ends).each_cons(2).all? { |a, b| b - a >= 0.9 }
        end

        def ageing?(window)
          least = [GAIN_AGES * window.gain_over_time, ALL_AGES * window.bytes_over_time].max
          window.ageing >= least
        end

        def steady?(window, tracks, hours)
          third = window.gain / 3
          first, second = window.rises(2)
          window.rises(3).all? { |rise| rise >= third * THIRD } && second >= first * PACE &&
            not_slower?(window, tracks, hours)
        end

        # Compared with what was gained before it, as far as that was observed.
        def not_slower?(window, tracks, hours)
          start = tracks.map { |track| [track.started + WARM_UP * @hour, track.times.first].max }.max
          from = [@now - 2 * hours * @hour, start].max
          to = @now - hours * @hour
          return true if to - from < @hour

          before = Window.new(tracks, from, to, 1).gain / (to - from)
          window.gain / (hours * @hour) >= before * PACE
        end

        # The sums of all workers at equal distances of time.
        class Window
          # Between two points on the line that connects them. A site that was not observed was small.
          def self.at_times(times, values, wanted)
            return [0.0] * wanted.size unless values

            at = 0
            wanted.map do |time|
              at += 1 while at < times.size - 2 && times[at + 1] <= time
              a = values[at] || 0.0
              b = values[at + 1] || a
              share = ((time - times[at]) / (times[at + 1] - times[at])).clamp(0.0, 1.0) if times[at + 1]
              a + (b - a) * (share || 0.0)
            end
          end

          def initialize(tracks, from, to, segments)
            @tracks = tracks
            @length = to - from
            @times = Array.new(segments + 1) { |index| from + @length * index / segments }
            @each = tracks.map { |track| at_times(track.times, track.series&.bytes) }
            @bytes = sums(@each)
          end

          # By the line through the means of the first and the last quarter.
          def gain = @gain ||= gain_of(@bytes)

          def error
            @error ||= Math.sqrt(sampling * scale**2 + scatter)
          end

          # The sum of bytes times age; nil if that is unknown.
          def ages
            return @ages if defined?(@ages)

            columns = @tracks.map { |track| track.series&.ages }
            unknown = columns.any? { |column| column && column.last.nil? }
            @ages = unknown ? nil : sums(@tracks.zip(columns).map { |track, column|
                                           at_times(track.times, column)
                                         })
          end

          def counts = @bytes.map { |bytes| [bytes.round, 0].max }

          # The gain of each part.
          def rises(parts)
            size = (@bytes.size - 1) / parts
            Array.new(parts) { |part| @bytes[(part + 1) * size] - @bytes[part * size] }
          end

          # By how much the sum of the ages rose, and by how much it would have if nothing was freed.
          def ageing = ages.last - ages.first

          def bytes_over_time = over_time(0)

          def gain_over_time = over_time(@bytes.first)

          # Workers that have a good part of an equal share.
          def growing
            @each.count { |bytes| gain_of(bytes) >= gain / @each.size / 4 }
          end

          private

          def gain_of(bytes)
            return bytes.last - bytes.first if bytes.size < 8

            (mean(bytes.last(quarter)) - mean(bytes.first(quarter))) * scale
          end

          def quarter = @bytes.size / 4

          # From the distance between the middles of the quarters to the whole window.
          def scale = @bytes.size < 8 ? 1.0 : (@bytes.size - 1.0) / (@bytes.size - quarter)

          def mean(numbers) = numbers.sum / numbers.size

          # The variance of the gain that the distances from the line show, which also has what sampling does
          # not explain: garbage that waits for the GC.
          def scatter
            return 0.0 if @bytes.size < 8

            middle = (@bytes.size - 1) / 2.0
            slope = gain / (@bytes.size - 1)
            level = mean(@bytes)
            squares = @bytes.each_with_index.sum { |bytes, index|
              (bytes - level - (index - middle) * slope)**2
            }
            squares / (@bytes.size - 2) * 2 / quarter * scale**2
          end

          def over_time(base)
            segment = @length / (@bytes.size - 1)
            @bytes.each_cons(2).sum { |a, b| (a + b) / 2 - base } * segment
          end

          # The variances at both ends.
          def sampling
            ends = [@times.first, @times.last]
            @tracks.sum { |track| at_times(track.times, track.series&.errors, ends).sum { |error| error**2 } }
          end

          def sums(rows) = rows.transpose.map(&:sum)

          def at_times(times, values, wanted = @times) = Window.at_times(times, values, wanted)
        end
        private_constant :Window
      end
    end
  end
end
