# frozen_string_literal: true

module Memprof
  class Report
    # Restricts a profile to matching files and given classes. Takes the same values as memory_profiler's
    # `allow_files`, `ignore_files` and `trace`.
    class Filter
      CLASS_NAME = Module.instance_method(:name)
      private_constant :CLASS_NAME

      def initialize(allow_files: nil, ignore_files: nil, trace: nil, internal: nil)
        @internal = internal
        @allow = pattern(allow_files, "allow_files")
        @ignore = pattern(ignore_files, "ignore_files")
        @classes = trace && (trace.is_a?(Array) ? trace : [trace]).map { |klass| class_name(klass) }
      end

      # The profile restricted to what matches; the same object if everything does.
      def apply(profile)
        files = profile.files.select { |file| file?(file) } if @allow || @ignore
        classes = classes_of(profile)
        files || classes ? profile.filter(files, classes) : profile
      end

      private

      # The VM's own objects have names that a class cannot have.
      def classes_of(profile)
        return @classes unless @internal == false

        (@classes || profile.classes).reject { |name| InternalClasses.include?(name) }
      end

      def file?(file)
        file = Printable.utf8(file) # a regexp raises on invalid UTF-8
        (@allow.nil? || @allow.match?(file)) && (@ignore.nil? || !@ignore.match?(file))
      end

      # Strings are sources of regular expressions, as in memory_profiler.
      def pattern(files, option)
        files = Array(files || [])
        return if files.empty?

        Regexp.union(files.map { |file| file.is_a?(Regexp) ? file : Regexp.new(file) })
      rescue TypeError, RegexpError => e
        raise ArgumentError, "#{option} must be a String, a Regexp or an Array of them: #{e.message}"
      end

      def class_name(klass)
        return Printable.utf8(klass) if klass.is_a?(String)
        unless Module === klass
          raise ArgumentError, "trace must be a class or an Array of classes, not #{klass.inspect}"
        end

        # A class may override `name`.
        name = CLASS_NAME.bind_call(klass)
        raise ArgumentError, "trace cannot distinguish classes without a name: #{klass.inspect}" unless name

        Printable.utf8(name)
      end
    end
  end
end
