# frozen_string_literal: true

module Memprof
  module CLI
    # `memprof start`: starts tracking in a running process.
    class Start < Command
      include LiveProcess

      SUMMARY = "starts tracking in a running process"
      USAGE = "[OPTIONS] PID"
      DETAILS = <<~TEXT
        The process must have loaded memprof/signal, which tracks from the start: use
        this after `memprof stop`. Dumps written from now on contain allocation sites,
        and `memprof stats` counts the objects.

        Examples:
          memprof start 4711
          memprof start 4711 --sample 100
      TEXT

      def call(arguments)
        target = target(arguments)
        answer = ask_process(target, { do: "start" }.merge(@options.slice(:sample, :stack)))
        state = answer["changed"] ? "started" : "was already running"
        @terminal.puts("tracking #{state} in process #{target.pid}")
        0
      end
    end

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
