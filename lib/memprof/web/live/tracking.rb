# frozen_string_literal: true

require_relative "../../native"
require_relative "../../paths"
require_relative "../../printable"

module Memprof
  class Web
    class Live
      # The tracking of Memprof.start, and what it has seen.
      class Tracking
        LARGEST = 4 * 1024 * 1024 # bytes of a source file
        AROUND = 12 # lines shown before and after one
        private_constant :LARGEST, :AROUND

        def running? = Memprof.running?

        def start(sample:, stack:) = Memprof.start(sample: sample, stack: stack)

        def stop = Memprof.stop

        # Forgets what was seen, and goes on.
        def clear = Memprof.send(:session).clear

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

          lines(file, line)
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

        def lines(file, line)
          return [] unless File.file?(file) && File.size(file) <= LARGEST

          wanted = ([line - AROUND, 1].max)..(line + AROUND)
          File.foreach(file, encoding: Encoding::UTF_8).with_index(1).lazy
            .select { |_, number| wanted.cover?(number) }.first(wanted.size)
            .map { |text, number| [number, text.chomp] }
        rescue SystemCallError, ArgumentError
          [] # it is not there, or no path: code that was evaluated
        end
      end
    end
  end
end
