# frozen_string_literal: true

require_relative "live_process"

module Memprof
  module CLI
    # `memprof start`: tracking, in a running process.
    class Start < Command
      include LiveProcess

      SUMMARY = "has a running process track its objects"
      USAGE = "--pid PID [OPTIONS]"
      DETAILS = <<~TEXT
        The process must have loaded memprof/signal, which tracks from the beginning:
        this is for one in which tracking was stopped. Dumps made from now on say where
        objects were made, and `memprof stats` counts them.

        Examples:
          memprof start --pid 4711
          memprof start --pid 4711 --sample 100
      TEXT

      def call(arguments)
        target = target(arguments)
        answer = ask(target, { do: "start" }.merge(@options.slice(:sample, :stack)))
        state = answer["changed"] ? "tracks its objects from now on" : "was tracking its objects already"
        @terminal.puts("process #{target.pid} #{state}")
        0
      end

      private

      def define_options(parser)
        pid(parser)
        count(parser, "--sample N", "track one object in N, scale up (default: 1)", :sample)
        count(parser, "--stack N", "keep N calling frames per object (default: 1)", :stack)
      end
    end
  end
end
