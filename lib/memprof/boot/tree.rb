# frozen_string_literal: true

require_relative "recorded"
require_relative "required_file"

module Memprof
  module Boot
    # The requires of a process as a tree, from the data that {BootRecorder} writes.
    class Tree
      # The memory added by the files of one gem: with everything they loaded, and alone.
      GemTotal = Struct.new(:name, :total, :own, :files, :seconds)

      # The program's main file, with everything loaded before the end of the boot.
      attr_reader :root
      # Top-level files that were loaded later.
      attr_reader :late
      attr_reader :seconds, :rss

      def self.load(path)
        new(Marshal.load(File.binread(path))) # rubocop:disable Security/MarshalLoad -- only we can write there
      end

      def initialize(facts)
        @seconds = facts[:seconds]
        @rss = facts[:rss]
        @amounts = facts[:marks].to_h { |mark, *amounts| [mark, RequiredFile::Amounts.new(*amounts.flatten)] }
        @root = RequiredFile.new(name: facts[:program], path: nil, kind: :program, late: false, failed: false,
          own: amounts(0) + amounts(Recorded::ROOT), seconds: @seconds, rss: @rss)
        @late = []
        grow(facts[:nodes].map { |row| Recorded::Row.new(*row) }, facts[:requirers])
      end

      # All files but the main one, those with most own bytes first.
      def files
        @files ||= [root, *late].flat_map { |file| file.each.to_a }.drop(1)
          .sort_by { |file| [-file.own.retained_bytes, file.path || file.name] }
      end

      # Totals by gem, those whose own files retain most first. Files that one gem loads from another count in
      # the totals of both.
      def gems
        @gems ||= files.group_by(&:gem).map { |name, files| gem_total(name, files) }
          .sort_by { |gem| [-gem.own.retained_bytes, gem.name] }
      end

      def total = late.map(&:total).inject(root.total, :+)

      def to_h
        by_gem = gems.map do |gem|
          { name: gem.name, total: gem.total.to_h, self: gem.own.to_h,
            files: gem.files, seconds: gem.seconds }
        end
        { format: "memprof-boot", version: 1, seconds: seconds, rss: rss, total: total.to_h,
          boot: root.to_h, after_boot: late.map(&:to_h), gems: by_gem }
      end

      private

      def amounts(mark) = @amounts.fetch(mark, RequiredFile::NOTHING)

      def grow(rows, requirers)
        by_number = { Recorded::ROOT => root, 0 => root }
        rows.each do |row|
          parent = by_number.fetch(row.parent, root)
          # Nothing had to be loaded, but the lookup allocated objects, which count for the requirer.
          file = row.empty ? parent.tap { |known| known.add(amounts(row.number)) } : file(row)
          by_number[row.number] = file
          next if row.empty

          (row.late && !parent.late ? late : parent.children) << file
        end
        note_requirers(rows, by_number, requirers)
        ([root] + late).each(&:sort)
        late.sort_by! { |file| -file.total.retained_bytes }
      end

      def file(row)
        RequiredFile.new(name: row.name, path: row.path, kind: row.kind, late: row.late, failed: row.failed,
          own: amounts(row.number), seconds: row.seconds || 0.0, rss: row.rss)
      end

      # Other files may have required it by another name.
      def note_requirers(rows, by_number, requirers)
        by_path = rows.reject(&:empty).to_h { |row| [row.path || row.name, row] }
        names = rows.to_h { |row| [row.name, row] }
        requirers.each do |name, numbers|
          row = names[name]
          row = by_path["#{name.delete_suffix(".rb")}.rb"] if row.nil? || row.empty
          next if row.nil? || row.empty

          others = (numbers - [row.parent, row.number]).filter_map { |number| by_number[number]&.path }
          by_number[row.number].also_required_by |= others
        end
      end

      def gem_total(name, files)
        outer = files - files.flat_map { |file| file.each.drop(1) }
        GemTotal.new(name, sum(outer.map(&:total)), sum(files.map(&:own)), files.size, outer.sum(&:seconds))
      end

      def sum(amounts) = amounts.inject(RequiredFile::NOTHING, :+)
    end
  end
end
