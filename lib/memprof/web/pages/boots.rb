# frozen_string_literal: true

module Memprof
  class Web
    module Pages
      # `/boots/1`: the cost of each file that a program required, as a tree, by gem and by file. Files of the
      # tree below `min=` percent of the total are omitted.
      class BootPage < RecordPage
        at "/boots/:id"

        VALUES = %w[retained_bytes retained_objects code_bytes].freeze
        SHARE = 1.0
        LIMIT = 50 # gems and files
        private_constant :LIMIT

        def data
          { seconds: content.seconds, rss: content.rss, total: content.total, count: content.files(sort).size,
            requires: requires([content.root]), after_boot: requires(content.late), gems: gems, files: files }
        end

        def sort = choice(:sort, VALUES, VALUES.first)

        def min = decimal(:min, 0..100, "a number from 0 to 100") || SHARE

        private

        # The program itself is always shown. Files below an omitted one are smaller still.
        def requires(files)
          minimum = content.total[sort] * min / 100
          rows = files.flat_map { |file| file.each.to_a }
          rows = rows.select { |file, _| file.total[sort] >= minimum || file.equal?(content.root) }
          rows.map do |file, depth|
            { file: file.name, depth: depth, gem: file.gem, notes: file.notes,
              also_required_by: file.also_required_by, seconds: file.seconds, rss: file.rss, **amounts(file) }
          end
        end

        def gems
          gems = content.gems.sort_by { |gem| [-gem.total[sort], gem.name] }.first(LIMIT)
          gems.map { |gem| { gem: gem.name, files: gem.files, seconds: gem.seconds, **amounts(gem) } }
        end

        def files
          content.files(sort).first(LIMIT).map do |file|
            { file: file.name, gem: file.gem, seconds: file.own_seconds, self: file.own }
          end
        end

        def amounts(part) = { total: part.total, self: part.own }
      end

      # `/boots/1/flame`: the tree of requires as a flame graph.
      class BootFlame < RecordPage
        at "/boots/:id/flame", title: "Requires", assets: %w[flame.js flame.css]

        def data = { values: BootPage::VALUES, **content.flame(value) }

        def value = choice(:value, BootPage::VALUES, BootPage::VALUES.first)
      end
    end
  end
end
