# frozen_string_literal: true

module Memprof
  module Testing
    # malloc by location while blocks run: recorded by {Malloc}, without memprof's own allocations. If a
    # recording is already running, it is used, and continues.
    class NativeRecording
      # Indexes into the results of Native::Malloc.sites.
      CALLS = 0
      BYTES = 1
      LIVE_BYTES = 7

      # Considers locations that contain `from`, or that match it as a Regexp.
      def initialize(from)
        unless from.nil? || from.is_a?(Regexp) || from.is_a?(String)
          raise ArgumentError, "#{from.inspect} is not a location: give a Regexp, or a part of a path"
        end

        @from = from
      end

      def open
        Bracket.run(-> { Malloc.start }, -> { Malloc.stop }) do
          raise Error, "malloc is recorded by samples, which are not exact: stop that first" if Malloc.sample

          yield
        end
      end

      def read(index)
        Malloc.quiet do
          Native::Malloc.sites.each_with_object({}) do |(location, counts), found|
            found[location] = counts[index] if counts?(location)
          end
        end
      end

      def to_s = @from ? " from #{@from.inspect}" : ""

      private

      def counts?(location)
        case @from
        when nil then true
        when Regexp then @from.match?(location)
        else location.include?(@from)
        end
      end
    end
  end
end
