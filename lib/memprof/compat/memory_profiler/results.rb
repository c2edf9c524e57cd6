# frozen_string_literal: true

module Memprof
  module MemoryProfiler
    # A {Report} with the rest of memory_profiler's results interface. The VM's own objects, such as `<iseq>`,
    # are left out, as memory_profiler does not see them.
    class Results < Report
      # @param profile [Memprof::Native::Profile, nil] the recorded profile; nil for an empty one
      # @param options (see Report#initialize)
      # @api private
      def initialize(profile = nil, **options)
        super(profile || Session.run { |session| session.tap(&:finish).profile.filter([], nil) }, **options)
      end

      # A number of bytes with a decimal unit.
      #
      # @param bytes [Integer]
      # @return [String]
      # @example
      #   require "memprof/memory_profiler"
      #   MemoryProfiler::Results.new.scale_bytes(16_660) # => "16.66 kB"
      def scale_bytes(bytes) = Units.decimal_bytes(bytes)

      # A path starting at the gem, the standard library or the application.
      #
      # @param path [String]
      # @return [String]
      # @example
      #   require "memprof/memory_profiler"
      #   MemoryProfiler::Results.new.normalize_path("/gems/rack-3.0/lib/a.rb") # => "rack-3.0/lib/a.rb"
      def normalize_path(path) = Paths.normalize(path)
    end
  end
end
