# frozen_string_literal: true

module Memprof
  module Agent
    class Trends
      # Whether a site leaks, according to the live bytes of all workers. Estimates add up, so a leak that is
      # too small to be seen in one worker is seen in eight.
      #
      # A leak grows with the work that is done, or with time, for as long as the process runs. A cache or a
      # pool grows with work, too, but ever more slowly, as more and more of what is wanted is there. While
      # the load rises, that looks like a leak by the clock on the wall. So work has a clock of its own: the
      # objects that the processes have allocated. All of this must hold in a window of hours:
      #
      # 1. The gain is large, in all workers and in each. A buffer that fills evenly looks like a leak until
      #    it is full, so a gain must be larger than most buffers.
      # 2. Per allocated object, the second half of the window gains as much as the first, beyond doubt, and
      #    the window as much as the time before. Or each eighth gains the same per hour.
      # 3. The window begins near the maximum of the time before. What grows back to where it was yesterday
      #    does not leak.
      # 4. The objects grow old: in a leak, what was gained is as old as the time since. In a queue, or in a
      #    store of sessions that expire, objects are replaced by younger ones while their number grows.
      # 5. The window begins after the warm-up of the process, and each third of it has a major GC: objects
      #    that are old remain until then, though nothing retains them.
      class Judgement
        # Hours. Shorter windows would be the flank of a morning; longer ones do not fit into the table.
        WINDOWS = [5, 6, 8, 12, 16, 20].freeze
        # Hours without ages: more than a day's rise of load lasts.
        WITHOUT_AGES = 16
        # Parts of a window, for halves and for eighths: 20 minutes in the shortest, as old points are apart.
        SEGMENTS = 16
        EIGHTHS = 8
        # Bytes in all workers: less harms no host.
        LEAST = 32 << 20
        # Bytes for each worker in which a site grows. It is as much as the shortest window permits: a leak of
        # 20 MiB/h in eight workers gains 12.5 MiB in each.
        LEAST_EACH = 12 << 20
        # The second half gains as much as the first if it has this share of it, with so many standard errors
        # to spare. Chance does that in one of 4,000 windows. A cache that is a fifth full does not.
        PACE = 0.9
        PACE_SIGMAS = 3.5
        # The same for the window and the time before. It is longer, and has more than one load.
        FORMER_PACE = 0.85
        FORMER_SIGMAS = 2
        # The share of the second half that the first must have: a step has all of its gain in one half.
        BEGUN = 0.5
        # How far an eighth may be from the mean: three errors of sampling of 20 MiB/h in small objects.
        UNEVEN = 0.08
        # The share of the maximum before: less was there already.
        HIGH = 0.8
        # Shares of the age that the gain would have if nothing was freed, which garbage blurs, and of the
        # age that all would have: beside much that is replaced, the age of a small gain is not seen.
        GAIN_AGES = 0.75
        ALL_AGES = 0.35
        # A site has stopped growing if its maximum in the second half of so many hours is not higher by more
        # than the smallest leak that is named would gain.
        LEVEL_HOURS = 20
        LEVEL_GAIN = LEAST / 2
        private_constant :LEVEL_HOURS, :LEVEL_GAIN
        private_constant :WINDOWS, :WITHOUT_AGES, :SEGMENTS, :EIGHTHS, :LEAST, :LEAST_EACH, :PACE,
          :PACE_SIGMAS, :FORMER_PACE, :FORMER_SIGMAS, :BEGUN, :UNEVEN, :HIGH, :GAIN_AGES, :ALL_AGES

        # What one worker observed of a site: `settled` is when its warm-up was over, nil if it is not yet;
        # `times` are those of the {SeriesTable::Series}, `majors` the number of major GCs until then (nil if
        # that is unknown), and `allocated` the number of objects that the process had allocated.
        Track = Struct.new(:settled, :times, :series, :majors, :allocated)

        # The verdict on a growing site: bytes per hour in all workers with the standard error, hours of
        # growth, the numbers of workers in which it grows and of all, and the bytes of each worker.
        Growth = Struct.new(:rate, :error, :hours, :growing, :workers, :share)

        # A track without a series is that of a worker that does not have the site. The judgement is up to the
        # last point that all of them have.
        def initialize(tracks, now, hour)
          @tracks = tracks.select { |track| track.times.last >= now - hour / 4 }
          @now = @tracks.map { |track| track.times.last }.min
          @hour = hour
        end

        # The growth in the longest window, or nil.
        def growth
          return if small?

          WINDOWS.reverse_each do |hours|
            found = within(hours)
            return found if found
          end
          nil
        end

        # The bytes in each worker of a site that has stopped growing; nil if it grows, or was not observed
        # for long enough.
        def level
          from = @now - LEVEL_HOURS * @hour unless small?
          return unless from && @tracks.all? { |track| observed?(track, from) }

          window = Window.new(@tracks, from, @now)
          first, second = window.highest(2)
          return if second - first > LEVEL_GAIN || window.rates(:work, 2).any? { |rate| rate.value.nan? }

          [first, second].max / @tracks.size
        end

        private

        # The bytes of the last point.
        def bytes = @bytes ||= @tracks.sum { |track| track.series&.bytes&.last || 0 }

        def small? = @tracks.empty? || bytes < LEAST

        def within(hours)
          from = @now - hours * @hour
          tracks = @tracks.select { |track| observed?(track, from) }
          return if tracks.empty?

          window = Window.new(tracks, from, @now)
          return if window.gain < [LEAST, LEAST_EACH * window.growing].max
          return unless window.ages ? ageing?(window) : hours >= WITHOUT_AGES
          return unless leaking?(window, former(tracks, from))

          Growth.new(window.gain / hours, window.error / hours, hours.to_f, window.growing, @tracks.size,
            bytes / @tracks.size)
        end

        def observed?(track, from)
          track.settled && track.settled <= from && track.times.first <= from && collected?(track, from)
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

        # The time before a window, as far as it was observed.
        def former(tracks, from)
          start = tracks.map { |track| [track.settled, track.times.first].max }.max
          Window.new(tracks, start, from) if from - start >= @hour
        end

        def leaking?(window, former)
          return false if former && window.bytes.first < HIGH * former.bytes.max

          (steady?(window) && not_slower?(window, former, :work)) ||
            (even?(window) && not_slower?(window, former, :time))
        end

        # By work.
        def steady?(window)
          first, second = window.rates(:work, 2)
          second.at_least?(first, PACE, PACE_SIGMAS) && first.value >= BEGUN * second.value
        end

        # By the clock on the wall. A cache that fills while the load rises is even for a moment, not hours.
        def even?(window)
          eighth = window.gain / EIGHTHS
          window.rises(EIGHTHS).all? { |rise| (rise - eighth).abs < UNEVEN * eighth }
        end

        def not_slower?(window, former, clock)
          former.nil? ||
            window.rates(clock, 1).first.at_least?(former.rates(clock, 1).first, FORMER_PACE, FORMER_SIGMAS)
        end

        # Bytes per unit of a clock, with the variance of the estimate.
        Rate = Struct.new(:value, :variance) do
          # As much as a share of another one, beyond so many standard errors.
          def at_least?(other, share, sigmas)
            error = Math.sqrt(variance + share**2 * other.variance)
            value - share * other.value >= sigmas * error
          end
        end

        # The sums of all workers at equal distances of time.
        class Window
          # Between two points on the line that connects them. A site that was not observed was small.
          def self.at_times(times, values, wanted)
            return [0.0] * wanted.size unless values

            at = ((times.bsearch_index { |time| time > wanted.first } || 0) - 1).clamp(0, times.size - 1)
            wanted.map do |time|
              at += 1 while at < times.size - 2 && times[at + 1] <= time
              a = values[at] || 0.0
              b = values[at + 1] || a
              share = ((time - times[at]) / (times[at + 1] - times[at])).clamp(0.0, 1.0) if times[at + 1]
              a + (b - a) * (share || 0.0)
            end
          end

          def initialize(tracks, from, to)
            @tracks = tracks
            @length = to - from
            @times = Array.new(SEGMENTS + 1) { |index| from + @length * index / SEGMENTS }
          end

          # Of both ends alone, as most windows gain too little.
          def gain = @gain ||= gains.sum

          def bytes = @bytes ||= sums(@tracks.map { |track| at_times(track.times, track.series&.bytes) })

          # The standard error of the gain.
          def error = @error ||= Math.sqrt([sampling.sum, variance(bytes, @times)].max)

          # The sum of bytes times age; nil if that is unknown.
          def ages
            return @ages if defined?(@ages)

            columns = @tracks.map { |track| track.series&.ages }
            unknown = columns.any? { |column| column && column.last.nil? }
            @ages = unknown ? nil : sums(@tracks.zip(columns).map { |track, column|
                                           at_times(track.times, column)
                                         })
          end

          # The maximum of each part.
          def highest(parts) = split(bytes, parts).map(&:max)

          # The gain of each part.
          def rises(parts) = split(bytes, parts).map { |part| part.last - part.first }

          # The {Rate} of each part; that of a part without work is unknown, which no rate is at least.
          def rates(clock, parts)
            ticks = clock == :work ? work : @times
            split(bytes, parts).zip(split(ticks, parts)).map do |part, times|
              rise = part.last - part.first
              passed = times.last - times.first
              next Rate.new(Float::NAN, Float::NAN) unless passed.positive?

              variance = [variance(part, times), rise.abs * weight].max
              Rate.new(rise / passed, variance / passed**2)
            end
          end

          # By how much the sum of the ages rose, and by how much it would have if nothing was freed.
          def ageing = ages.last - ages.first

          def bytes_over_time = over_time(0)

          def gain_over_time = over_time(bytes.first)

          # Workers that have a good part of an equal share.
          def growing = gains.count { |each| each >= gain / gains.size / 4 }

          private

          # Of each worker.
          def gains
            @gains ||= @tracks.map do |track|
              first, last = at_times(track.times, track.series&.bytes, [@times.first, @times.last])
              last - first
            end
          end

          def work = @work ||= sums(@tracks.map { |track| at_times(track.times, track.allocated) })

          def split(values, parts)
            size = SEGMENTS / parts
            Array.new(parts) { |part| values[part * size, size + 1] }
          end

          # The variance of a gain, by the distances of its parts from an equal pace: lumps add up, while
          # garbage that waits for the GC, which is more at one time and less at the next, does not.
          def variance(bytes, times)
            pace = (bytes.last - bytes.first) / (times.last - times.first)
            off = bytes.zip(times).each_cons(2).map { |(a, from), (b, to)| b - a - pace * (to - from) }
            lumps = off.sum { |each| each**2 } * off.size / (off.size - 1.0)
            pairs = off.each_cons(2).sum { |a, b| a * b } * off.size / (off.size - 1.0)
            [lumps + 2 * pairs, lumps / off.size].max
          end

          # The variances at both ends.
          def sampling
            ends = [@times.first, @times.last]
            @sampling ||= sums(@tracks.map { |track|
              at_times(track.times, track.series&.errors, ends).map { |error| error**2 }
            })
          end

          # The bytes that a sample stands for.
          def weight = bytes.last.positive? ? sampling.last / bytes.last : 0.0

          def over_time(base)
            segment = @length / SEGMENTS
            bytes.each_cons(2).sum { |a, b| (a + b) / 2 - base } * segment
          end

          def sums(rows) = rows.transpose.map(&:sum)

          def at_times(times, values, wanted = @times) = Window.at_times(times, values, wanted)
        end
        private_constant :Rate, :Window
      end
    end
  end
end
