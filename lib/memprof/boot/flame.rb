# frozen_string_literal: true

module Memprof
  module Boot
    # The tree as stacks of files with the bytes that each file itself retains, for drawings.
    class Flame
      def initialize(tree)
        @samples = []
        collect(tree.root, [])
        tree.late.each { |file| collect(file, [frame(tree.root), "(after boot)"]) }
      end

      # Brendan Gregg's format: `a;b;c 4711`.
      def collapsed
        lines = @samples.map { |stack, bytes| [stack.map { |name| name.tr(";\n", ":  ") }.join(";"), bytes] }
        lines.map { |line| "#{line.join(" ")}\n" }.join
      end

      # https://www.speedscope.app/file-format-schema.json
      def speedscope
        frames = @samples.flat_map(&:first).uniq
        numbers = frames.each_with_index.to_h
        weights = @samples.map(&:last)
        profile = { type: "sampled", name: "retained bytes by require", unit: "bytes", startValue: 0,
                    endValue: weights.sum, weights: weights,
                    samples: @samples.map { |stack, _| stack.map { |name| numbers.fetch(name) } } }
        { "$schema": "https://www.speedscope.app/file-format-schema.json", exporter: "memprof #{VERSION}",
          shared: { frames: frames.map { |name| { name: name } } }, profiles: [profile] }
      end

      private

      def collect(file, above)
        stack = [*above, frame(file)]
        bytes = file.own.retained_bytes
        @samples << [stack, bytes] if bytes.positive?
        file.children.each { |child| collect(child, stack) }
      end

      def frame(file) = file.path ? Paths.short(file.path) : file.name
    end
  end
end
