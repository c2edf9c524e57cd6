# frozen_string_literal: true

require_relative "../wording"

module Memprof
  module CLI
    # Opens a dump, and shows progress on a terminal, or that it waits for a pipe.
    class Loading
      BAR = 24
      PATIENCE = 2 # seconds
      private_constant :BAR, :PATIENCE

      def initialize(terminal, path)
        @terminal = terminal
        @path = path
      end

      # `core` is the core file at the path, if it is open already.
      def open(core: nil, **options)
        reading do
          next core.heap(**options.except(:index), &method(:show)) if core
          next Memprof::Heap.read($stdin, **options.except(:index), &method(:show)) if @path == "-"

          Memprof::Heap.open(@path, **options, &method(:show))
        end
      end

      def show(stage, done, total)
        @heard ||= done.positive?
        @terminal.progress(line(stage, done, total))
      end

      # The block calls {show} while it reads.
      def reading(&block)
        hint = Thread.new { say_that_it_waits } if pipe?
        @terminal.busy(&block)
      ensure
        hint&.kill
      end

      private

      def pipe? = @path == "-" ? !$stdin.stat.file? : File.pipe?(@path)

      def say_that_it_waits
        sleep(PATIENCE)
        @terminal.warn("waiting for input from #{@path == "-" ? "stdin" : @path}") unless @heard
      end

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
