# frozen_string_literal: true

require_relative "live_process"

module Memprof
  module CLI
    # `memprof stop`: no more tracking, in a running process.
    class Stop < Command
      include LiveProcess

      SUMMARY = "has a running process stop tracking"
      USAGE = "--pid PID"
      DETAILS = <<~TEXT
        What was tracked is forgotten, and the process runs as if memprof were not
        there. It still gives dumps, which then do not say where objects were made.

        Example:
          memprof stop --pid 4711
      TEXT

      def call(arguments)
        target = target(arguments)
        state = ask(target, { do: "stop" })["changed"] ? "tracks no longer" : "was not tracking"
        @terminal.puts("process #{target.pid} #{state}")
        0
      end

      private

      def define_options(parser)
        pid(parser)
      end
    end
  end
end
