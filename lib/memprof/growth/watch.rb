# frozen_string_literal: true

require_relative "population"

module Memprof
  class Growth
    # A block that runs over and over, and what lives after each run.
    class Watch
      # More runs when in doubt, in multiples of those that were asked for: three times as many in all, then
      # six times, and twelve times if growth may be slowing down. bench/leak_power.rb measures how often the
      # verdict is wrong.
      MORE = [2, 3].freeze
      # Quantiles of the normal distribution for Laplace's test: below the first, growth may be slowing down,
      # and twice as many runs are to show it; below the second it does, as a cache that fills up.
      DOUBT = -0.84
      SLOWS = -1.64
      private_constant :MORE, :DOUBT, :SLOWS

      attr_reader :runs

      # `matters`, called with the name of a class and the number of an anonymous one, says what counts; all
      # does without it.
      def initialize(block, matters = nil)
        @block = block
        @matters = matters
        @anonymous = {}
        @session = Session.prepare(scope: :process, identities: !matters.nil?)
        @series = Series.new
        @population = nil
        @runs = 0
      end

      def run(times)
        # Not where it is made: the caller must have it by then, to close it.
        @session.open if @session.closed?
        times.times do
          @block.call
          GC.start
          Native.quiet do
            @series.add(live)
            @population&.add
          end
        end
        @runs += times
      end

      # Runs so many times; from the middle on counts all objects of the classes that grow, to tell turnover
      # from growth. While something grows it runs on, to tell a memo that fills up from a leak, but not more
      # than `most` times in all.
      def measure(times, most)
        run(times - times / 2)
        @population = Native.quiet { Population.new(suspects.map(&:last)) }
        run(times / 2)
        MORE.each { |more| run([times * more, most - @runs].min) if Native.quiet { growing.any? } }
        run([@runs, most - @runs].min) if Native.quiet { slowing? }
      end

      # Runs on as long as something may grow: a full buffer, a cache that fills up and a leak in every fifth
      # run look the same for a while.
      def run_while_growing(times)
        MORE.each do |more|
          @suspects = Native.quiet { suspects }
          break if @suspects.empty?

          @population ||= Native.quiet { Population.new(@suspects.map(&:last)) }
          run(times * more)
        end
        run(@runs) if Native.quiet { slowing? }
      end

      # Counts by place, of what goes on growing at the same rate.
      def series = growing.reject { |_, counts| Native.acceleration(counts) < SLOWS }

      def profile
        @session.finish
        @session.profile
      end

      def close = @session.close

      private

      # Objects by place and class. Anonymous classes are known here only: their numbers say nothing later.
      def live
        return @session.stats unless @matters

        @session.counts.filter_map do |objects, (file, line, class_name, number)|
          next if objects.zero? || (number && !@matters.call(class_name, number))

          @anonymous[class_name] = true if number
          [objects, file, line, class_name]
        end
      end

      def matters?(class_name) = @matters.nil? || @anonymous.key?(class_name) || @matters.call(class_name)

      def growing = fitting(@suspects ? confirmed_suspects : net)

      # Of what does more than replace.
      def net = @series.to_h.reject { |(_, _, class_name), counts| @population.replaced?(class_name, counts) }

      # Of suspects whose whole class grows.
      def confirmed_suspects
        @series.to_h.slice(*@suspects).select { |(_, _, class_name), _| @population.grows?(class_name) }
      end

      def fitting(series)
        series.zip(Native.fit(series.values)).filter_map { |place, (*, grows)| place if grows }.to_h
      end

      def slowing? = growing.each_value.any? { |counts| Native.acceleration(counts) < DOUBT }

      def suspects
        @series.to_h.filter_map do |place, counts|
          halves = @population ? [counts, counts.last(counts.size / 2)] : [counts]
          place if matters?(place.last) && halves.all? { |part| rises?(part) }
        end
      end

      # True if there is more in the last third of the runs than in the first.
      def rises?(counts)
        third = [counts.size / 3, 1].max
        counts.last(third).sort[third / 2] > counts.first(third).sort[third / 2]
      end
    end
  end
end
