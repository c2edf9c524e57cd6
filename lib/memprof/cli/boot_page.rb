# frozen_string_literal: true

require_relative "../cell"

module Memprof
  module CLI
    # The answer of `memprof boot`: a tree, then gems and files.
    class BootPage
      # Files below this share of the total are omitted.
      SHARE = 0.01
      private_constant :SHARE

      def initialize(tree, minimum:, limit:)
        @tree = tree
        @total = tree.total
        @minimum = minimum || (@total.retained_bytes * SHARE).ceil
        @limit = limit
      end

      def to(format, width: nil, paint: Paint.new)
        @is_screen = !width.nil?
        page = Page.new(width: width, paint: paint)
        page.heading(heading)
        page.listing(requires([@tree.root]))
        page.note(left_out) if left_out
        page.listing(requires(@tree.late), heading: after_boot) if @tree.late.any?
        page.listing(gems, heading: "By gem")
        page.listing(files, heading: "By file")
        page.to(format)
      end

      private

      def heading
        files = Units.plural(@tree.files.size, "file")
        rss = @tree.rss && ", RSS #{Cell.text(@tree.rss, :growth)}"
        added = "#{Units.bytes(@total.retained_bytes)} in #{Units.objects(@total.retained_objects)}"
        code = Units.bytes(@total.code_bytes)
        "#{files} added #{added}, #{code} of it code; #{Cell.text(@tree.seconds, :seconds)}#{rss}"
      end

      def after_boot
        bytes = @tree.late.sum { |file| file.total.retained_bytes }
        files = @tree.late.sum { |file| file.each.count }
        "Loaded after boot: #{Units.plural(files, "file")}, #{Units.bytes(bytes)}"
      end

      def left_out
        hidden = @tree.files.count { |file| !shown?(file) }
        return if hidden.zero?

        "#{Units.plural(hidden, "file")} of less than #{Units.bytes(@minimum)} left out; see --min-size"
      end

      def shown?(file) = file.total.retained_bytes >= @minimum

      # The columns that files and gems share.
      def totals
        Listing.new.columns(:total, as: :total_bytes) { |one| one.total.retained_bytes }
          .columns(:self_bytes) { |one| one.own.retained_bytes }
          .columns(:count, as: :total_objects) { |one| one.total.retained_objects }
          .columns(:code_bytes) { |one| one.total.code_bytes }
      end

      def requires(files)
        listing = totals.columns(:rss_growth, as: :rss, spare: true, &:rss)
          .columns(:seconds, spare: true, &:seconds)
        if @is_screen
          listing.columns(:required_by, spare: true) { |file| required_by(file) }
        end
        listing.columns(:file) { |file| file.label(others: !@is_screen) }
        files.each { |file| grow(listing, file, 0) }
        listing
      end

      # The program itself is always shown.
      def grow(listing, file, depth)
        return unless shown?(file) || file.equal?(@tree.root)

        listing.item(file, depth: depth)
        file.children.each { |child| grow(listing, child, depth + 1) }
      end

      # Number of requires of a file that would be loaded even without its parent in the tree.
      def required_by(file)
        file.also_required_by.size + 1 if file.also_required_by.any?
      end

      def gems
        totals.columns(:files, &:files)
          .columns(:seconds, spare: true, &:seconds).columns(:gem, &:name)
          .rows(@tree.gems.first(@limit))
      end

      def files
        Listing.new.columns(:self_bytes) { |file| file.own.retained_bytes }
          .columns(:count, as: :self_objects) { |file| file.own.retained_objects }
          .columns(:code_bytes) { |file| file.own.code_bytes }
          .columns(:seconds, as: :self_seconds, spare: true, &:own_seconds)
          .columns(:file) { |file| file.path ? Paths.short(file.path) : file.name }
          .rows(@tree.files.first(@limit))
      end
    end
  end
end
