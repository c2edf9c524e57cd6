# frozen_string_literal: true

module Memprof
  module CLI
    # `memprof stop`: stops tracking in a running process.
    class Stop < Command
      include LiveProcess

      SUMMARY = "stops tracking in a running process"
      USAGE = "PID"
      DETAILS = <<~TEXT
        The process forgets what it tracked and runs at full speed again. It can still
        be dumped; new dumps have no allocation sites.

        Example:
          memprof stop 4711
      TEXT

      def call(arguments)
        target = target(arguments)
        state = ask_process(target, { do: "stop" })["changed"] ? "stopped" : "was not running"
        @terminal.puts("tracking #{state} in process #{target.pid}")
        0
      end
    end
  end
end
