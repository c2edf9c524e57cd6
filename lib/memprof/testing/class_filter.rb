# frozen_string_literal: true

module Memprof
  module Testing
    # Tells which of the named classes an object's class belongs to. A class stands for itself and its
    # subclasses, a module for the classes that include it, a String for the class of just that name (internal
    # objects have no other: `"<iseq>"`). Where several fit, the nearest takes the object: of `Object` and
    # `Array` an Array belongs to `Array`.
    #
    # @api private
    class ClassFilter
      # Some classes define `name` or `to_s` anew; this is the name that the VM knows, also for classes
      # without one.
      NAME = Module.instance_method(:to_s)
      private_constant :NAME

      # @param key [Module, String]
      # @return [String] the name that sites carry
      def self.name_of(key)
        key.is_a?(Module) ? NAME.bind_call(key) : key
      end

      # @param keys [Array<Module, String>]
      # @param exact [Boolean] true: a class stands for itself alone
      # @raise [ArgumentError] if a key is neither a class or module nor a name
      def initialize(keys, exact: false)
        wrong = keys.find { |key| !key.is_a?(Module) && !key.is_a?(String) }
        raise ArgumentError, "#{wrong.inspect} is not a class" if wrong

        @keys = keys
        @exact = exact
      end

      # Must be asked after the measured block: the block may have made classes.
      #
      # @param class_name [String]
      # @return [Module, String, nil] the key that the objects of this class belong to
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

      # The classes that a key stands for, by name.
      def classes(key)
        return { key => nil } if key.is_a?(String)

        classes = @exact ? [key] : family(key)
        classes.to_h { |klass| [self.class.name_of(klass), klass] }
      end

      def family(key)
        return ObjectSpace.each_object(Class).select { |klass| klass.include?(key) } unless key.is_a?(Class)

        found = [key]
        found.each { |klass| found.concat(klass.subclasses) }
      end
    end
  end
end
