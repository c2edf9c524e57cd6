# frozen_string_literal: true

require_relative "../paths"
require_relative "../printable"

module Memprof
  module Boot
    # A file that was loaded, with what it brought itself and with all that it loaded in turn.
    class RequiredFile
      # Objects and bytes of a file, and its instruction sequences, which are among the retained.
      Amounts = Struct.new(:allocated_objects, :allocated_bytes, :retained_objects, :retained_bytes,
        :code_objects, :code_bytes) do
        def +(other)
          self.class.new(*to_a.zip(other.to_a).map(&:sum))
        end
      end
      NOTHING = Amounts.new(0, 0, 0, 0, 0, 0).freeze

      attr_reader :name, :path, :kind, :late, :failed, :own, :seconds, :rss, :children
      attr_accessor :also_required_by

      def initialize(name:, path:, kind:, late:, failed:, own:, seconds:, rss:)
        @name = Printable.utf8(name)
        @path = path && Printable.utf8(path)
        @kind = kind
        @late = late
        @failed = failed
        @own = own
        @seconds = seconds
        @rss = rss
        @children = []
        @also_required_by = []
      end

      def total
        @total ||= children.map(&:total).inject(own, :+)
      end

      def add(amounts)
        @own += amounts
      end

      # Seconds and growth of the RSS without what it loaded. Files that threads load side by side overlap.
      def own_seconds = [seconds - children.sum(&:seconds), 0].max

      def own_rss = rss && (rss - children.sum { |child| child.rss || 0 })

      # What was not found has no path.
      def gem
        return "other" unless path

        Paths.application?(path) ? "app" : Paths.gem_of(path)
      end

      # As tables have it: the path from the gem or library on, and what is special about it; with the other
      # files that require it, which a screen has no room for.
      def label(others: true)
        notes = [("not loaded" if failed), (kind.to_s unless kind == :require)].compact
        notes << "also required by #{named_others}" if others && also_required_by.any?
        text = path ? Paths.short(path) : name
        notes.empty? ? text : "#{text} (#{notes.join("; ")})"
      end

      # Those with most bytes first.
      def sort
        children.sort_by! { |child| [-child.total.retained_bytes, child.path || child.name] }
        children.each(&:sort)
        self
      end

      # It and all below it, outer ones first.
      def each(&block)
        return enum_for(:each) unless block

        yield self
        children.each { |child| child.each(&block) }
      end

      def to_h
        { name: name, path: path, gem: gem, kind: kind, loaded: !failed, total: total.to_h, self: own.to_h,
          seconds: seconds, self_seconds: own_seconds, rss: rss, self_rss: own_rss,
          also_required_by: also_required_by, requires: children.map(&:to_h) }
      end

      private

      # As derailed has it: two by name.
      def named_others
        names = also_required_by.map { |path| Paths.short(path) }
        more = names.size - 2
        more.positive? ? "#{names.first(2).join(", ")} and #{more} more" : names.join(", ")
      end
    end
  end
end
