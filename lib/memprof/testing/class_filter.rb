# frozen_string_literal: true

module Memprof
  module Testing
    # Tells which of the given classes an object's class belongs to. A class stands for itself and its
    # subclasses, a module for the classes that include it, a String for the class of just that name (internal
    # objects have no other: `"<iseq>"`). Where several fit, the nearest takes the object: of `Object` and
    # `Array` an Array belongs to `Array`.
    #
    # Sites know a class without a name by the nearest class above it that has one: `#<Class < Array>`. So
    # such classes count together with all others of that name: a limit may be exceeded because of a sibling,
    # but never kept because an object was missed.
    class ClassFilter
      # Some classes define `name` anew; this is the name that the VM knows.
      NAME = Module.instance_method(:name)
      private_constant :NAME

      def self.name_of(key)
        return key unless key.is_a?(Module)

        NAME.bind_call(key) || (key.is_a?(Class) ? nameless(key) : "#<Module>")
      end

      def self.nameless(klass)
        parent = klass.superclass
        parent = parent.superclass until parent.nil? || NAME.bind_call(parent)
        parent ? "#<Class < #{NAME.bind_call(parent)}>" : "#<Class>"
      end
      private_class_method :nameless

      def initialize(keys, exact: false)
        wrong = keys.find { |key| !key.is_a?(Module) && !key.is_a?(String) }
        raise ArgumentError, "#{wrong.inspect} is not a class" if wrong

        @keys = keys
        @exact = exact
      end

      # Must be asked after the measured block: the block may have made classes.
      def key_for(class_name)
        @classes ||= @keys.to_h { |key| [key, classes(key)] }
        fitting = @keys.select { |key| @classes[key].key?(class_name) }
        fitting.min_by { |key| distance(@classes[key][class_name], key) }
      end

      private

      # Steps from a class up to the key, in the order in which Ruby looks for methods; a name is nearest.
      def distance(klass, key)
        key.is_a?(String) ? -1 : klass.ancestors.index(key)
      end

      # The classes that a key stands for, by name; of several without one, the nearest to the key.
      def classes(key)
        return { key => nil } if key.is_a?(String)

        classes = @exact ? [key] : family(key)
        classes.each_with_object({}) do |klass, by_name|
          name = self.class.name_of(klass)
          nearer = by_name[name]
          by_name[name] = klass if nearer.nil? || distance(klass, key) < distance(nearer, key)
        end
      end

      def family(key)
        return ObjectSpace.each_object(Class).select { |klass| klass.include?(key) } unless key.is_a?(Class)

        found = [key]
        found.each { |klass| found.concat(klass.subclasses) }
      end
    end
  end
end
