# frozen_string_literal: true

require_relative "live_process"

module Memprof
  module CLI
    # `memprof stats`: live tracked objects of a running process.
    #
    # @api private
    class Stats < Command
      include LiveProcess

      SUMMARY = "counts the live tracked objects of a running process"
      USAGE = "--pid PID [OPTIONS]"
      DETAILS = <<~TEXT
        One line for each place and class: number of objects, file, line, class, most
        first, as Memprof.stats prints them. The process must have loaded
        memprof/signal.

        Example:
          memprof stats --pid 4711 --limit 20
      TEXT

      # @param arguments [Array<String>] none
      # @return [Integer] exit status
      # @raise [UsageError] if the process can't be asked
      def call(arguments)
        answer = ask(target(arguments), { do: "stats" }.merge(@options.slice(:limit)))
        @terminal.print(answer.fetch("lines", []).map { |line| "#{line}\n" }.join) ? 0 : 2
      end

      private

      def define_options(parser)
        pid(parser)
        count(parser, "--limit N", "the first N lines only (default: all)", :limit)
      end
    end
  end
end
