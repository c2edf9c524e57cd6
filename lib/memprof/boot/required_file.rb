# frozen_string_literal: true

require_relative "../paths"
require_relative "../printable"

module Memprof
  module Boot
    # A file that was loaded, with its own amounts and those of all files that it loaded in turn.
    class RequiredFile
      # Objects and bytes of a file, and its instruction sequences, which are part of the retained objects.
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

      # Own seconds and RSS growth, without the files it loaded. Files loaded by concurrent threads overlap.
      def own_seconds = [seconds - children.sum(&:seconds), 0].max

      def own_rss = rss && (rss - children.sum { |child| child.rss || 0 })

      # A file that was not found has no path.
      def gem
        return "other" unless path

        Paths.application?(path) ? "app" : Paths.gem_of(path)
      end

      # The label in tables: the path starting at the gem or library, with notes; and optionally with the
      # other files that require it, for which a screen has no room.
      def label(others: true)
        notes = [("not loaded" if failed), (kind.to_s unless kind == :require)].compact
        notes << "also required by #{named_others}" if others && also_required_by.any?
        text = path ? Paths.short(path) : name
        notes.empty? ? text : "#{text} (#{notes.join("; ")})"
      end

      # Sorts by bytes, most first.
      def sort
        children.sort_by! { |child| [-child.total.retained_bytes, child.path || child.name] }
        children.each(&:sort)
        self
      end

      # Iterates over this file and all files below it, outer ones first.
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

      # Two by name, as in derailed.
      def named_others
        names = also_required_by.map { |path| Paths.short(path) }
        more = names.size - 2
        more.positive? ? "#{names.first(2).join(", ")} and #{more} more" : names.join(", ")
      end
    end
  end
end
