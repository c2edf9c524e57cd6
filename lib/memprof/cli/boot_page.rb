# frozen_string_literal: true

require_relative "../cell"
require_relative "listing"
require_relative "page"

module Memprof
  module CLI
    # The answer of `memprof boot`: a tree, then gems and files.
    class BootPage
      # A file below this share of the total is left out.
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
        files = Cell.plural(@tree.files.size, "file")
        rss = @tree.rss && ", RSS #{Cell.text(@tree.rss, :growth)}"
        brought = "#{Units.bytes(@total.retained_bytes)} in #{Units.objects(@total.retained_objects)}"
        code = Units.bytes(@total.code_bytes)
        "#{files} brought #{brought}: #{code} of it code; #{Cell.text(@tree.seconds, :seconds)}#{rss}"
      end

      def after_boot
        bytes = @tree.late.sum { |file| file.total.retained_bytes }
        files = @tree.late.sum { |file| file.each.count }
        "Loaded after boot: #{Cell.plural(files, "file")}, #{Units.bytes(bytes)}"
      end

      def left_out
        hidden = @tree.files.count { |file| !shown?(file) }
        return if hidden.zero?

        "#{Cell.plural(hidden, "file")} of less than #{Units.bytes(@minimum)} left out; see --min"
      end

      def shown?(file)
        file.total.retained_bytes >= @minimum
      end

      def columns(listing)
        listing.column("Total", :bytes, :total_bytes).column("Self", :bytes, :self_bytes)
          .column("Objects", :count, :total_objects).column("Code", :bytes, :code_bytes)
      end

      def requires(files)
        listing = columns(Listing.new).column("RSS", :growth, :rss, spare: true)
          .column("Time", :seconds, :seconds, spare: true)
        listing.column("Required by", :count, :required_by, spare: true) if @is_screen
        listing.column("File", :name, :file)
        files.each { |file| grow(listing, file, 0) }
        listing
      end

      # The program itself is always there.
      def grow(listing, file, depth)
        return unless shown?(file) || file.equal?(@tree.root)

        cells = [*amounts(file.total, file.own), file.rss, file.seconds]
        cells << required_by(file) if @is_screen
        listing.row(*cells, file.label(others: !@is_screen), depth: depth)
        file.children.each { |child| grow(listing, child, depth + 1) }
      end

      # Said of files that the program would load without the one that stands over it.
      def required_by(file)
        file.also_required_by.size + 1 if file.also_required_by.any?
      end

      def amounts(total, own)
        [total.retained_bytes, own.retained_bytes, total.retained_objects, total.code_bytes]
      end

      def gems
        listing = columns(Listing.new).column("Files", :count, :files)
          .column("Time", :seconds, :seconds, spare: true).column("Gem", :name, :gem)
        @tree.gems.first(@limit).each do |gem|
          listing.row(*amounts(gem.total, gem.own), gem.files, gem.seconds, gem.name)
        end
        listing
      end

      def files
        listing = Listing.new.column("Self", :bytes, :self_bytes).column("Objects", :count, :self_objects)
          .column("Code", :bytes, :code_bytes).column("Time", :seconds, :self_seconds, spare: true)
          .column("File", :name, :file)
        @tree.files.first(@limit).each do |file|
          own = file.own
          listing.row(own.retained_bytes, own.retained_objects, own.code_bytes, file.own_seconds,
            file.path ? Paths.short(file.path) : file.name)
        end
        listing
      end
    end
  end
end
