# frozen_string_literal: true

module Memprof
  module Testing
    # The sites of a failure message: most first, aligned, with paths as short as possible.
    module SiteTable
      TOP = 10
      CLASS_WIDTH = 40
      private_constant :CLASS_WIDTH

      def self.of_rows(rows, unit)
        rows = merge(rows).sort_by { |row| [-row.public_send(unit), row.file, row.line, row.class_name] }
        table = Table.new.columns(:count, :bytes, :class, :site)
        fill(table, rows) { |row| [Units.count(row.objects), Units.bytes(row.bytes)] }
      end

      def self.of_growth(sites)
        held = sites.first(TOP).filter_map(&:holder).map { |line| "  #{line}\n" }.join
        return of_contents(sites) + held if sites.any?(&:contents)

        table = Table.new.columns(:objects_per_run, :class, :site)
        fill(table, sites) { |site| [format("%+.2f", site.slope)] } + held
      end

      def self.of_contents(sites)
        table = Table.new.columns(:bytes_per_run, :class, :site)
        fill(table, sites) { |site| ["+#{Units.bytes(site.bytes.round)}"] }
      end

      private_class_method :of_contents

      # Adds rows with a location, and the cells before it.
      def self.of_locations(table, rows)
        rows.first(TOP).each { |location, *cells| table.row(*cells, Paths.short(location)) }
        table.empty? ? "" : table.to_text.gsub(/^/, "  ")
      end

      # Merges anonymous classes, whose names are the same.
      def self.merge(rows)
        rows.group_by { |row| [row.file, row.line, row.class_name] }.map do |_, same|
          same.first.dup.tap do |row|
            row.objects = same.sum(&:objects)
            row.bytes = same.sum(&:bytes)
          end
        end
      end
      private_class_method :merge

      def self.fill(table, rows)
        return "" if rows.empty?

        rows.first(TOP).each do |row|
          class_name = Printable.fit(row.class_name, CLASS_WIDTH)
          table.row(*yield(row), class_name, Paths.short_location(row))
        end
        hidden = rows.size - TOP
        "#{table.to_text.gsub(/^/, "  ")}#{"  ... and #{Units.count(hidden)} more\n" if hidden.positive?}"
      end
      private_class_method :fill
    end
  end
end
