# frozen_string_literal: true

module Memprof
  module MemoryProfiler
    # Names of gems, locations and classes, like memory_profiler's class of that name.
    class Helpers
      UNKNOWN = "<<Unknown>>"
      STRING_LENGTH = 200
      CLASS = Kernel.instance_method(:class)
      private_constant :UNKNOWN, :STRING_LENGTH, :CLASS

      # @example
      #   require "memprof/memory_profiler"
      #   MemoryProfiler::Helpers.new
      def initialize
        @gems = Hash.new { |gems, path| gems[path] = Paths.gem_of(path) }
        @locations = Hash.new { |locations, (file, line)| locations[[file, line]] = "#{file}:#{line}" }
        @strings = Hash.new { |strings, text| strings[text] = text[0, STRING_LENGTH] }
      end

      # @param path [String]
      # @return [String] the gem, library or application that the file belongs to
      # @example
      #   require "memprof/memory_profiler"
      #   MemoryProfiler::Helpers.new.guess_gem("/gems/rack-3.0/lib/a.rb") # => "rack-3.0"
      def guess_gem(path) = @gems[path]

      # @param file [String]
      # @param line [Integer]
      # @return [String] `"file:line"`, the same object each time
      # @example
      #   require "memprof/memory_profiler"
      #   MemoryProfiler::Helpers.new.lookup_location("a.rb", 3) # => "a.rb:3"
      def lookup_location(file, line) = @locations[[file, line]]

      # @param object [Object] any object, even one whose `class` returns something else
      # @return [Class]
      # @example
      #   require "memprof/memory_profiler"
      #   MemoryProfiler::Helpers.new.object_class("a") # => String
      def object_class(object)
        found = object.class
        found.instance_of?(Class) ? found : CLASS.bind_call(object)
      rescue StandardError
        CLASS.bind_call(object)
      end

      # @param klass [Class, Object]
      # @return [String] the name that the class reports; `"<<Unknown>>"` if it has none
      # @example
      #   require "memprof/memory_profiler"
      #   MemoryProfiler::Helpers.new.lookup_class_name(Class.new) # => "<<Unknown>>"
      def lookup_class_name(klass) = ((klass.is_a?(Class) && klass.name) || UNKNOWN).to_s

      # @param text [String]
      # @return [String] its first 200 characters, the same object for equal strings
      # @example
      #   require "memprof/memory_profiler"
      #   MemoryProfiler::Helpers.new.lookup_string("a" * 300).size # => 200
      def lookup_string(text) = @strings[text]
    end
  end
end
