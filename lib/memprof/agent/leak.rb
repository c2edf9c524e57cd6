# frozen_string_literal: true

require_relative "../paths"
require_relative "../printable"
require_relative "../units"

module Memprof
  module Agent
    # A site whose live bytes grow for hours, in the workers of a service taken together. Frozen.
    #
    # @example
    #   Memprof::Agent.leaks.each { |leak| puts leak if leak.bytes_per_hour > 10 << 20 }
    class Leak
      # Steps of a path that only lead into containers.
      ELEMENTS = /(?: -> (?:Array|Hash)\[\*\])+\z/
      private_constant :ELEMENTS

      # @return [String] path of the source file, the application's if that is known
      attr_reader :file
      # @return [Integer] line in the file
      attr_reader :line
      # @return [String] class of the objects
      attr_reader :class_name
      # @return [Float] by how many bytes per hour the site grows, in all workers; an estimate
      attr_reader :bytes_per_hour
      # @return [Float] the estimate's standard error
      attr_reader :error
      # @return [Float] hours that it has been growing for
      attr_reader :hours
      # @return [Array<Integer>] number of workers in which it grows, and of all
      attr_reader :workers
      # @return [String] name of the service
      attr_reader :service
      # @return [String, nil] the release that was running; nil if that is unknown
      attr_reader :release
      # @return [String, nil] the first release in which the site grew; nil if no earlier one was observed
      attr_reader :since
      # @return [String, nil] what retains the objects, as `PageCache::PAGES -> Hash[*]`; nil if that is
      #   unknown
      attr_reader :holder
      # @return [Time] when it was named
      attr_reader :named_at

      # @api private
      def initialize(file:, line:, class_name:, bytes_per_hour:, error:, hours:, workers:, service:,
        release: nil, since: nil, holder: nil, named_at: Time.now)
        @file = Printable.utf8(file).freeze
        @line = line
        @class_name = Printable.utf8(class_name).freeze
        @bytes_per_hour = bytes_per_hour
        @error = error
        @hours = hours
        @workers = workers.dup.freeze
        @service = service
        @release = release
        @since = since
        @holder = holder
        @named_at = named_at
        freeze
      end

      # Where the objects were allocated.
      #
      # @return [String] `"file:line"`
      # @example
      #   Memprof::Agent.leaks.map(&:location)
      def location = "#{file}:#{line}"

      # One line for a log.
      #
      # @return [String] as `"app/models/page.rb:47: +20 MiB/h for 6 h in 8 of 8 workers, String in
      #   PageCache::PAGES, since release 3fe2a1"`
      # @example
      #   puts Memprof::Agent.leaks
      def to_s
        what = holder ? "#{class_name} in #{holder.sub(ELEMENTS, "")}" : class_name
        growth = "+#{size(bytes_per_hour)}/h for #{number(hours)} h"
        in_workers = "in #{workers.first} of #{Units.plural(workers.last, "worker")}"
        Printable.line(["#{Paths.short_location(self)}: #{growth} #{in_workers}", what, *releases].join(", "))
      end

      # @return [Hash{Symbol => Object}] plain values, with nil for what is unknown
      # @example
      #   Memprof::Agent.leaks.map(&:to_h)
      def to_h
        {
          file: file, line: line, class: class_name, bytes_per_hour: bytes_per_hour, error: error,
          hours: hours, workers: workers, service: service, release: release, since: since, holder: holder,
          named_at: named_at.to_f
        }
      end

      # A copy with what retains the objects.
      #
      # @api private
      def with_holder(text)
        facts = to_h.merge(class_name: class_name, holder: text, named_at: named_at).except(:class)
        Leak.new(**facts)
      end

      # Equality by value.
      #
      # @param other [Object]
      # @return [Boolean]
      # @example
      #   Memprof::Agent.leaks.first == Memprof::Agent.leaks.first # => true
      def ==(other) = other.instance_of?(Leak) && to_h == other.to_h
      alias_method :eql?, :==

      # @return [Integer] equal for equal leaks
      # @example
      #   Memprof::Agent.leaks.map(&:hash)
      def hash = to_h.hash

      # @return [String] for the console
      # @example
      #   p Memprof::Agent.leaks.first
      def inspect = "#<#{self.class} #{self}>"

      private

      def releases
        return "since release #{since}" if since
        return "in release #{release}" if release
      end

      # A decimal only where it matters.
      def size(bytes) = Units.bytes(bytes.round).sub(/(\d\d)\.\d /, '\1 ').sub(".0 ", " ")

      def number(hours) = format("%.1f", hours).delete_suffix(".0")
    end
  end
end
