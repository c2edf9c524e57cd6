# frozen_string_literal: true

require_relative "native"
require_relative "printable"

module Memprof
  # Counts the objects of the process, see Memprof.count_objects.
  module Census
    NAME = Module.instance_method(:name)
    private_constant :NAME

    def self.count(namespaces, gc: false)
      names = namespaces.flatten.map { |namespace| name(namespace) }
      GC.start if gc
      counts = Native.count_objects(names)
      gc ? { "gc_ran" => true, **counts } : counts
    end

    # A class may override `name` or `to_s`, so this calls Module's.
    def self.name(namespace)
      name =
        case namespace
        when Module then NAME.bind_call(namespace)
        when String, Symbol then Printable.utf8(namespace).delete_prefix("::")
        end
      return name unless name.nil? || name.empty?

      raise ArgumentError,
        "namespace must be a class or module with a name, or its name, not #{namespace.inspect}"
    end
    private_class_method :name
  end
end
