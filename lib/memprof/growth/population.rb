# frozen_string_literal: true

module Memprof
  class Growth
    # How many objects of some classes the whole heap has after each run, those from before the first run
    # included. A full buffer replaces an old object by a new one with each run: the new ones, which are
    # tracked, get more, and the class does not.
    class Population
      NAMELESS = /\A#<Class < (.+)>\z/
      private_constant :NAMELESS

      def initialize(names)
        @classes = names.uniq.to_h { |name| [name, find(name)] }.compact
        @counts = @classes.transform_values { [] }
      end

      # Counts once more.
      def add
        @classes.each { |name, klass| @counts[name] << ObjectSpace.each_object(klass) {} }
        self
      end

      def grows?(name)
        counts = @counts[name]
        counts.nil? || Native.fit([counts]).first.last
      end

      private

      # Subclasses count with their class. A name may be nobody's: classes can call themselves anything.
      def find(name)
        found = Object.const_get(name[NAMELESS, 1] || name)
        found if found.is_a?(Class)
      rescue NameError
        nil
      end
    end
  end
end
