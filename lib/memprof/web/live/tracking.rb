# frozen_string_literal: true

require_relative "../../native"
require_relative "../../paths"
require_relative "../../printable"
require_relative "../../source"

module Memprof
  class Web
    class Live
      # What the tracking of Memprof.start has seen.
      module Tracking
        AROUND = 12 # lines shown before and after one
        private_constant :AROUND

        class << self
          def rows(file: nil)
            Native.quiet do
              places = Memprof.send(:session).stats.map do |count, path, line, class_name|
                { count: count, file: path, line: line, class: class_name }
              end
              places = of_files(places, file) if file
              places.sort_by { |row| [-row[:count], *row.values_at(:file, :line, :class).map(&:to_s)] }
            end
          end

          # Lines of a source file, as it is now. Only of files in which tracked objects were allocated: the
          # page shows no other files of the machine.
          def source(file, line)
            known = rows.any? { |row| row[:file] == file && row[:line] == line }
            raise NotFound, "no live tracked object was allocated there" unless known

            Source.lines(file, line, around: AROUND, any: true).to_a
          end

          private

          # Many places are in one file, which is looked at once. Its path may be in any encoding.
          def of_files(places, part)
            chosen = Hash.new do |known, path|
              whole = Printable.utf8(path.to_s)
              known[path] = whole.include?(part) || Paths.short(whole).include?(part)
            end
            places.select { |place| chosen[place[:file]] }
          end
        end
      end
    end
  end
end
