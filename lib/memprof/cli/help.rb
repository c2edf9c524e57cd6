# frozen_string_literal: true

module Memprof
  module CLI
    # `memprof help`: the list of verbs, or what one of them takes.
    class Help < Command
      SUMMARY = "shows this list, or what a command takes"
      USAGE = "[COMMAND]"
      DETAILS = ""

      def call(arguments)
        verb, *rest = arguments
        raise UsageError, "help takes one command, not also: #{rest.join(" ")}" unless rest.empty?
        return CLI.command(verb, @terminal).show_help if verb

        @terminal.print(overview) ? 0 : 2
      end

      private

      def overview
        verbs = VERBS.map { |name, constant| format("  %-11s%s", name, CLI.const_get(constant)::SUMMARY) }
        <<~TEXT
          #{@terminal.bold("memprof #{VERSION}")}: which lines create objects, which objects stay, and why

          Usage: memprof COMMAND [OPTIONS] [ARGUMENTS]

          Commands:
          #{verbs.join("\n")}

          Options:
            -h, --help     show this list; `memprof help COMMAND` says more
            -v, --version  show the version

          Examples:
            memprof run rake spec
            memprof run --output report.txt -- puma -p 3000
            memprof track script.rb
            memprof dump --pid 4711
            memprof leaks heap.memprof

          The form of memprof 0.3, Memprof Uploader, is there, too:
          memprof --pid PID --name NAME; `memprof --pid PID --help` says more.
        TEXT
      end
    end
  end
end
