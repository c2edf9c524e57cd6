# frozen_string_literal: true

module Memprof
  module Testing
    # Finds which of the given classes an object's class belongs to. A class includes its subclasses, a module
    # the classes that include it, a String only the class of exactly that name (internal objects have only
    # that: `"<iseq>"`). If several match, the nearest wins: with `Object` and `Array`, an Array belongs to
    # `Array`.
    #
    # Anonymous classes are identified by a number while the session that saw them is open, even after they
    # are freed.
    class ClassFilter
      # Some classes override `name`; this returns the name in the VM.
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

      # The key that the objects of a Measurement::Row belong to.
      def key_of(row) = row.keys ? row.keys[self] : key_for(row.class_name)

      # Must be called after the measured block, which may define classes. `number` is that of an anonymous
      # class.
      def key_for(class_name, number = nil)
        return key_for_anonymous(class_name, number) if number

        @classes ||= @keys.to_h { |key| [key, classes(key)] }
        fitting = @keys.select { |key| @classes[key].key?(class_name) }
        fitting.min_by { |key| distance(@classes[key][class_name], key) }
      end

      private

      def key_for_anonymous(class_name, number)
        return class_name if @keys.include?(class_name)

        modules = @keys.grep(Module)
        index = Native.nearest_class(number, modules, @exact)
        index && modules[index]
      end

      # Steps from a class up to the key, in method resolution order; a name is nearest.
      def distance(klass, key) = key.is_a?(String) ? -1 : klass.ancestors.index(key)

      def classes(key)
        return { key => nil } if key.is_a?(String)

        classes = @exact ? [key] : family(key)
        classes.to_h { |klass| [NAME.bind_call(klass), klass] }.tap { |by_name| by_name.delete(nil) }
      end

      def family(key)
        return ObjectSpace.each_object(Class).select { |klass| klass.include?(key) } unless key.is_a?(Class)

        found = [key]
        found.each { |klass| found.concat(klass.subclasses) }
      end
    end
  end
end
