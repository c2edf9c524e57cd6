# frozen_string_literal: true

module Memprof
  class Growth
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
  end
end
