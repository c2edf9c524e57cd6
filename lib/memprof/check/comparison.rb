# frozen_string_literal: true

require_relative "../heap/sentences"
require_relative "../native"
require_relative "../printable"

module Memprof
  module Check
    # Reports compared by the extension: totals, lines, classes and gems that changed.
    class Comparison
      MEASURES = %i[allocated_bytes allocated_objects retained_bytes retained_objects].freeze
      HEAD = /\A\s*\{\s*"format"\s*:\s*"memprof-report"/
      private_constant :HEAD

      # Whether a file is a report, not a dump.
      def self.report?(path)
        return false unless File.file?(path)

        HEAD.match?((File.binread(path, 256) || +"").force_encoding(Encoding::UTF_8).scrub)
      end

      # Compares report files, one or more runs on each side.
      def self.of_files(before, after, **options)
        sides = [before, after].map do |files|
          files.map { |file| [Printable.utf8(file), File.read(file, encoding: Encoding::UTF_8).scrub] }
        end
        new(*sides, **options)
      end

      # Each side is an Array of names and texts of reports.
      def initialize(before, after, measure: :allocated_bytes, internal: false)
        @texts = [before, after]
        @internal = internal
        @measure = measure
        answer = symbolize(Native.compare_reports(before, after, measure.to_s, internal))
        @answer = Heap::Sentences.complete(answer)
      end

      # The same, sorted by another measure.
      def by(measure)
        measure == @measure ? self : self.class.new(*@texts, measure: measure, internal: @internal)
      end

      def runs = @answer[:runs]

      def totals = @answer[:totals]

      def internal = @answer[:internal]

      def lines = @answer[:lines]

      def matches = @answer[:matches]

      def warnings = @answer[:warnings]

      def rows(name) = @answer.fetch({ line: :lines, class: :classes, gem: :gems }.fetch(name))

      def grown(measure) = lines.select { |line| line[measure][:change].positive? }

      def to_h = @answer

      private

      def symbolize(value)
        case value
        when Hash then value.to_h { |key, part| [key.to_sym, symbolize(part)] }
        when Array then value.map { |part| symbolize(part) }
        else value
        end
      end
    end
  end
end
