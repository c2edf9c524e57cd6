# frozen_string_literal: true

require "json"
require_relative "../../paths"

module Memprof
  class Web
    class Records
      # The output of `memprof boot --json`: the files that a program required, as a tree.
      class BootRecord
        DEEPEST = 2000 # of the JSON: two levels a require
        # Amounts of a file, each in total (with all that it required) and of its own.
        VALUES = %w[
          retained_bytes retained_objects code_bytes code_objects allocated_bytes allocated_objects
        ].freeze
        # Label for files loaded after boot, as in the command's flame graphs.
        LATE = "(after boot)"
        private_constant :DEEPEST

        # A file; amounts by the names of VALUES.
        Node = Struct.new(:name, :gem, :notes, :also_required_by, :total, :own, :seconds, :own_seconds, :rss,
          :requires, keyword_init: true) do
          # Yields it and its descendants with their depths, outer ones first.
          def each(depth = 0, &block)
            return enum_for(:each, depth) unless block

            yield self, depth
            requires.each { |file| file.each(depth + 1, &block) }
          end
        end
        GemTotal = Struct.new(:name, :total, :own, :files, :seconds)

        attr_reader :root, :late, :gems, :seconds, :rss, :total

        class << self
          def read(io)
            answer = JSON.parse(io.read.force_encoding(Encoding::UTF_8).scrub, max_nesting: DEEPEST)
            new(answer)
          rescue JSON::ParserError
            raise Error, "the numbers of memprof boot are truncated: invalid JSON"
          rescue KeyError, NoMethodError, TypeError, ArgumentError
            raise Error, "not a report of memprof boot"
          end
        end

        def initialize(answer)
          @root = node(answer.fetch("boot"))
          @late = answer.fetch("after_boot").map { |file| node(file) }
          @gems = answer.fetch("gems").map { |gem| of_gem(gem) }
          @total = amounts(answer.fetch("total"))
          @seconds = Float(answer.fetch("seconds"))
          @rss = whole(answer["rss"])
        end

        def unit(value) = value.end_with?("_bytes") ? :bytes : :count

        # All files but the program, sorted by their own amount, largest first.
        def files(value)
          all = [@root, *@late].flat_map { |file| file.each.map { |one, _| one } }.drop(1)
          all.sort_by { |file| [-file.own[value], file.name] }
        end

        # The tree as a flame graph for {Icicle}.
        def flame(value)
          late = Node.new(name: LATE, own: { value => 0 }, requires: @late,
            total: { value => @late.sum { |file| file.total[value] } })
          whole = @root.dup
          whole.total = @total
          whole.requires = [*@root.requires, late] unless @late.empty?
          names = []
          frames = []
          draw(whole, 0, value, names, frames)
          { names: names, frames: frames }
        end

        private

        def draw(file, above, value, names, frames)
          frames << [above, names.push(file.name).size - 1, file.own[value], file.total[value], nil, nil]
          number = frames.size - 1
          file.requires.each { |below| draw(below, number, value, names, frames) }
        end

        def node(file)
          path = file["path"]
          total, own = file.fetch_values("total", "self").map { |numbers| amounts(numbers) }
          seconds, own_seconds = file.fetch_values("seconds", "self_seconds").map { |number| Float(number) }
          Node.new(name: path ? Paths.short(String(path)) : String(file.fetch("name")),
            gem: String(file.fetch("gem")), notes: notes(file), total: total, own: own, seconds: seconds,
            own_seconds: own_seconds, rss: whole(file["rss"]),
            also_required_by: file.fetch("also_required_by").map { |other| Paths.short(String(other)) },
            requires: file.fetch("requires").map { |below| node(below) })
        end

        # Remarks about a file, worded as in the command.
        def notes(file)
          kind = String(file.fetch("kind"))
          kind = nil if %w[require program].include?(kind)
          [("not loaded" unless file.fetch("loaded")), kind].compact
        end

        def of_gem(gem)
          GemTotal.new(String(gem.fetch("name")), amounts(gem.fetch("total")), amounts(gem.fetch("self")),
            Integer(gem.fetch("files")), Float(gem.fetch("seconds")))
        end

        def amounts(amounts) = VALUES.to_h { |name| [name, Integer(amounts.fetch(name))] }

        def whole(value) = value && Integer(value)
      end
    end
  end
end
