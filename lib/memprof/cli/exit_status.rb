# frozen_string_literal: true

module Memprof
  module CLI
    # The exit statuses of all commands. docs/exit-status.md is written from the table.
    module ExitStatus
      DONE = 0
      FOUND = 1
      FAILED = 2
      NOT_STARTED = 126
      NOT_FOUND = 127
      SIGNAL = 128 # and the number of the signal
      INTERRUPTED = 130
      # The program's own.
      PROGRAM = "the program's"

      RUNNING = "run, check, boot, malloc"
      READING = "memory, leaks, top, histogram, query, show, path, tree, diff, export, stats, dups, slots, " \
                "subset, core"
      private_constant :RUNNING, :READING

      # Rows: the status, the commands, and what it means.
      TABLE = [
        [DONE, "all", "the command did what it was asked"],
        [FOUND, "leaks --fail", "something grows"],
        [FOUND, "check", "a limit is exceeded"],
        [FOUND, "diff --max-increase", "a total of the reports increased by more"],
        [FOUND, "boot", "the program left no numbers: it ran no Ruby, or was ended by exit!"],
        [FOUND, "--pid PID --name NAME", "the command line of memprof 0.3: any error"],
        [FAILED, "all", "wrong options or arguments; a file or process that cannot be read; a result that " \
                        "cannot be printed"],
        [FAILED, READING, "an answer, but of a dump with missing or invalid parts: its numbers are too low"],
        [FAILED, "leaks", "whether something grows is unknown: with --fail, or if the dumps cannot say"],
        [FAILED, "dump --children", "one of the processes could not be dumped"],
        [PROGRAM, "#{RUNNING}, track", "the program's own exit status"],
        [NOT_STARTED, RUNNING, "the program cannot be started"],
        [NOT_FOUND, RUNNING, "the program was not found"],
        ["#{SIGNAL} + N", RUNNING, "signal N ended the program"],
        [INTERRUPTED, "all", "Ctrl-C; leaks with a PID and attach answer with what they have by then"]
      ].freeze

      # That of a command that only prints.
      def self.of(printed) = printed ? DONE : FAILED
    end
  end
end
