# frozen_string_literal: true

module Memprof
  module CLI
    # `memprof help`: the list of verbs, or the options of one.
    class Help < Command
      SUMMARY = "shows this list, or the options of a command"
      USAGE = "[--man] [COMMAND]"
      DETAILS = ""

      def call(arguments)
        verb, = expect_arguments(arguments, "[COMMAND]")
        return CLI.command(verb, @terminal).show_help if verb

        ExitStatus.of(@terminal.print(@options[:man] ? ManPage.new(@terminal).to_s : overview))
      end

      private

      def overview
        groups = GROUPS.map do |purpose, verbs|
          lines = verbs.map { |verb| format("  %-11s%s", verb, CLI.const_get(VERBS[verb])::SUMMARY) }
          "#{purpose}:\n#{lines.join("\n")}\n"
        end
        <<~TEXT
          #{@terminal.bold("memprof #{VERSION}")}: which lines allocate objects, which are retained, and why

          Usage: memprof TARGET...
                 memprof COMMAND [OPTIONS] [ARGUMENTS]

          TARGET is a PID or a file: a heap dump, several of one process, a core file, a
          recording of malloc, a log of traced requests, a report. memprof detects which,
          and prints the first answer you need: for a PID or dumps, what leaks.

          #{groups.join("\n")}
          Also: #{RARE.first(6).join(", ")},
          #{RARE.drop(6).join(", ")}

          Options:
            -h, --help     show this list; `memprof help COMMAND` describes one
            -v, --version  show the version

          Examples:
            memprof 4711
            memprof run rake spec
            memprof dump 4711 --output first.memprof
            memprof first.memprof second.memprof

          #{Compat::Uploader::HINT}
        TEXT
      end
    end
  end
end
