# frozen_string_literal: true

require_relative "../wording"

module Memprof
  module CLI
    # Opens a dump, and shows on a terminal how far that is.
    class Loading
      BAR = 24
      private_constant :BAR

      def initialize(terminal, path)
        @terminal = terminal
        @path = path
      end

      def open(**options)
        @terminal.busy do
          next Memprof::Heap.read($stdin, **options.except(:index), &method(:show)) if @path == "-"

          Memprof::Heap.open(@path, **options, &method(:show))
        end
      end

      def show(stage, done, total) = @terminal.progress(line(stage, done, total))

      private

      def line(stage, done, total)
        name = @path == "-" ? "stdin" : File.basename(@path)
        text = "#{name}: #{Wording::STAGES.fetch(stage.to_sym, stage)}"
        return text unless total.to_i.positive?

        share = done.fdiv(total).clamp(0.0, 1.0)
        filled = (share * BAR).round
        "#{text} [#{"#" * filled}#{" " * (BAR - filled)}] #{(share * 100).floor} % of #{Units.bytes(total)}"
      end
    end
  end
end
