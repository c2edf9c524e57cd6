# frozen_string_literal: true

require_relative "../paths"

module Memprof
  class Growth
    # The number of live objects of each site and class, or their bytes, after each run.
    class Series
      def initialize
        @runs = 0
        @counts = {}
      end

      # Adds the live objects after one more run: `[[count, file, line, class_name], ...]`.
      def add(stats)
        stats.each do |count, file, line, class_name|
          # Objects that memprof allocates while it counts are not growth of the measured program.
          next if Paths.own?(file)

          counts = (@counts[[file, line, class_name]] ||= [])
          counts << 0 while counts.size <= @runs # the runs after which it was absent
          counts[@runs] += count
        end
        @runs += 1
        self
      end

      # `[file, line, class_name]` to counts, one per run.
      def to_h = @counts.transform_values { |counts| counts + [0] * (@runs - counts.size) }
    end

    # The number of objects of some classes in the whole heap after each run, including those from before the
    # first run. A full buffer replaces an old object by a new one in each run: the number of new, tracked
    # objects rises, but that of the class does not.
    class Population
      NAMELESS = /\A#<Class < (.+)>\z/
      private_constant :NAMELESS

      def initialize
        @classes = {}
        @counts = {}
      end

      # Also counts the objects of these classes from the next run on.
      def watch(names)
        (names.uniq - @classes.keys).each do |name|
          next unless (klass = find(name))

          @classes[name] = klass
          @counts[name] = []
        end
      end

      # Counts again.
      def add
        counts = Native.count_instances(@classes.values)
        @classes.each_key.zip(counts) { |name, count| @counts[name] << count }
        self
      end

      def grows?(name)
        counts = @counts[name]
        counts.nil? || Native.fit([counts]).first.last
      end

      # Whether the new objects of a site mostly replace others of their class: run by run, the site gained
      # more than twice as many as its class.
      def replaced?(name, series)
        counts = @counts[name]
        return false unless counts

        gained, net = Native.fit([series.last(counts.size), counts]).map(&:first)
        net * 2 < gained
      end

      private

      # Subclasses count as their class. A name may not be a real class: classes can call themselves anything.
      def find(name)
        found = Object.const_get(name[NAMELESS, 1] || name)
        found if found.is_a?(Class)
      rescue NameError
        nil
      end
    end

    # Runs a block repeatedly and records what is live after each run.
    class Watch
      # Extra runs when in doubt, in multiples of the requested ones: three times as many in total, then six
      # times, and twelve times if growth may be slowing down. bench/leak_power.rb measures how often the
      # verdict is wrong.
      MORE = [2, 3].freeze
      # Quantiles of the normal distribution for Laplace's test: below the first, growth may be slowing down,
      # and twice as many runs must show it; below the second it does, like a cache that fills up.
      DOUBT = -0.84
      SLOWS = -1.64
      # Location of a container that is older than the first run.
      BEFORE = "(before the first run)"
      private_constant :MORE, :DOUBT, :SLOWS

      attr_reader :runs

      # `matters`, called with a class name and the number of an anonymous class, decides what counts; without
      # it, everything does.
      def initialize(block, matters = nil)
        @block = block
        @matters = matters
        @anonymous = {}
        @session = Session.prepare(scope: :process, identities: !matters.nil?)
        @population = nil
        @runs = 0
      end

      def run(times)
        # Not where it is created: the caller must have it by then, to close it.
        open if @session.closed?
        times.times do
          @block.call
          GC.start
          Native.quiet do
            count
            @population&.add
          end
        end
        @runs += times
      end

      # Runs so many times; from the middle on, counts all objects of the growing classes, to distinguish
      # turnover from growth. While something grows it continues, to distinguish a filling memo from a leak,
      # but never beyond `most` runs in total.
      def measure(times, most)
        run(times - times / 2)
        Native.quiet { watch_population }
        run(times / 2)
        MORE.each { |more| run([times * more, most - @runs].min) if Native.quiet { any_growing.any? } }
        run([@runs, most - @runs].min) if Native.quiet { slowing? }
      end

      # Continues as long as something may grow: a full buffer, a filling cache and a leak in every fifth run
      # look the same for a while.
      def run_while_growing(times)
        MORE.each do |more|
          @suspects = Native.quiet { suspects }
          break if @suspects.empty? && Native.quiet { rising_contents.empty? }

          Native.quiet { watch_population }
          run(times * more)
        end
        run(@runs) if Native.quiet { slowing? }
      end

      # Counts by place, where growth continues at the same rate.
      def series = steady(growing)

      # Bytes by place, where contents keep growing at the same rate. Empty if objects grow, because
      # containers grow with their elements.
      def contents = series.any? ? {} : steady(growing_contents)

      # Bytes that the objects of a place contained after each run.
      def bytes(place) = @contents.to_h.fetch(place)

      # Address of a container that is older than the first run; nil for objects that have a line.
      def address(place) = @addresses[place]

      def counts(place) = @series.to_h[place] || [1] * @runs

      # Whether objects are missing, so that growth may have gone unnoticed.
      def incomplete? = Native.incomplete?(@session.id)

      def profile
        @session.finish
        @session.profile
      end

      def close = @session.close

      private

      # The series are created after the first look at older containers, or they would be among them.
      def open
        @session.open
        Native.quiet { Native.contents(@session.id) }
        @series = Series.new
        @contents = Series.new
        @addresses = {}
      end

      # Objects and the bytes they contain, by place and class. Anonymous classes are resolved here: their
      # numbers mean nothing later.
      def count
        rows, older = Native.contents(@session.id)
        rows.select! { |_, (_, _, class_name, number), _| number.nil? || note(class_name, number) }
        @series.add(rows.map { |objects, (file, line, class_name), _| [objects, file, line, class_name] })
        bytes = rows.map { |_, (file, line, class_name), size| [size, file, line, class_name] }
        older.each do |number, class_name, more, address|
          bytes << [more, BEFORE, number, class_name]
          @addresses[[BEFORE, number, class_name]] = address
        end
        @contents.add(bytes)
      end

      def note(class_name, number)
        @anonymous[class_name] = true if @matters.nil? || @matters.call(class_name, number)
      end

      def matters?(class_name) = @matters.nil? || @anonymous.key?(class_name) || @matters.call(class_name)

      def growing = fitting(@suspects ? confirmed_suspects : net)

      def growing_contents = fitting(contents_of_constant_sites)

      def rising_contents
        contents_of_constant_sites.select { |_, bytes| halves(bytes).all? { |part| rises?(part) } }
      end

      # Sites with more objects contain more bytes, and are judged by their number. A few steps do not count
      # as growth: the GC may have found an address on the machine stack.
      def contents_of_constant_sites
        objects = @series.to_h
        @contents.to_h.filter_map do |place, bytes|
          next unless matters?(place.last)

          counts = objects[place] or next [place, bytes]
          [place, of_constant_number(bytes, counts)] unless rises_throughout?(counts)
        end.to_h
      end

      # The bytes since the number of objects last changed, if that covers at least half of the runs: earlier
      # steps look like slowing growth.
      def of_constant_number(bytes, counts)
        constant = counts.reverse_each.take_while { |count| count == counts.last }.size
        (constant * 2 < counts.size) ? bytes : bytes.last(constant)
      end

      def rises_throughout?(counts) = counts.each_slice((counts.size + 1) / 2).all? { |half| rises?(half) }

      def steady(series) = series.reject { |_, counts| Native.acceleration(counts) < SLOWS }

      def watch_population = (@population ||= Population.new).watch((@suspects || suspects).map(&:last))

      def any_growing = growing.then { |found| found.empty? ? growing_contents : found }

      # Counts by place, without those that only replace objects.
      def net = @series.to_h.reject { |(_, _, class_name), counts| @population.replaced?(class_name, counts) }

      # Suspects whose whole class grows.
      def confirmed_suspects
        @series.to_h.slice(*@suspects).select { |(_, _, class_name), _| @population.grows?(class_name) }
      end

      def fitting(series)
        series.zip(Native.fit(series.values)).filter_map { |place, (*, grows)| place if grows }.to_h
      end

      def slowing? = any_growing.each_value.any? { |counts| Native.acceleration(counts) < DOUBT }

      def suspects
        @series.to_h.filter_map do |place, counts|
          place if matters?(place.last) && halves(counts).all? { |part| rises?(part) }
        end
      end

      def halves(counts) = @population ? [counts, counts.last(counts.size / 2)] : [counts]

      # True if there are more in the last third of the runs than in the first.
      def rises?(counts)
        third = [counts.size / 3, 1].max
        counts.last(third).sort[third / 2] > counts.first(third).sort[third / 2]
      end
    end
  end
end
