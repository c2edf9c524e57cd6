# frozen_string_literal: true

require_relative "cli/command"
require_relative "cli/terminal"
require_relative "version"

module Memprof
  # The command line, `memprof VERB`. It presents and computes nothing; each verb is a file of its own.
  module CLI
    # Each verb and its class, in the order in which the help lists them.
    VERBS = {
      "run" => :Run, "check" => :Check, "track" => :Track, "dump" => :Dump, "start" => :Start,
      "stop" => :Stop, "stats" => :Stats, "stack" => :Stack,
      "attach" => :Attach, "boot" => :Boot, "require" => :Require,
      "memory" => :Memory, "malloc" => :Malloc, "core" => :Core, "trace" => :Trace, "leaks" => :Leaks,
      "top" => :Top, "histogram" => :Histogram, "query" => :Query, "show" => :Show, "path" => :Path,
      "tree" => :Tree, "dups" => :Dups, "slots" => :Slots, "diff" => :Diff, "subset" => :Subset,
      "export" => :Export, "console" => :Console, "web" => :Web, "convert" => :Convert,
      "completion" => :Completion, "help" => :Help
    }.freeze

    # Wrong use or wrong input: one line on stderr, exit status 2.
    class UsageError < StandardError
      # What is printed: a message has one line, unless it shows where a filter is wrong.
      def lines = [message]

      # A message of several lines.
      class Shown < UsageError
        def lines = message.split("\n")
      end
    end

    autoload :Run, "#{__dir__}/cli/run"
    autoload :Check, "#{__dir__}/cli/check"
    autoload :Track, "#{__dir__}/cli/track"
    autoload :Dump, "#{__dir__}/cli/dump"
    autoload :Start, "#{__dir__}/cli/start"
    autoload :Stop, "#{__dir__}/cli/stop"
    autoload :Stats, "#{__dir__}/cli/stats"
    autoload :Stack, "#{__dir__}/cli/stack"
    autoload :Attach, "#{__dir__}/cli/attach"
    autoload :Boot, "#{__dir__}/cli/boot"
    autoload :Require, "#{__dir__}/cli/require"
    autoload :Malloc, "#{__dir__}/cli/malloc"
    autoload :Core, "#{__dir__}/cli/core"
    autoload :Memory, "#{__dir__}/cli/memory"
    autoload :Trace, "#{__dir__}/cli/trace"
    autoload :Leaks, "#{__dir__}/cli/leaks"
    autoload :Top, "#{__dir__}/cli/top"
    autoload :Histogram, "#{__dir__}/cli/histogram"
    autoload :Query, "#{__dir__}/cli/query"
    autoload :Show, "#{__dir__}/cli/show"
    autoload :Path, "#{__dir__}/cli/path"
    autoload :Tree, "#{__dir__}/cli/tree"
    autoload :Dups, "#{__dir__}/cli/dups"
    autoload :Slots, "#{__dir__}/cli/slots"
    autoload :Diff, "#{__dir__}/cli/diff"
    autoload :Subset, "#{__dir__}/cli/subset"
    autoload :Export, "#{__dir__}/cli/export"
    autoload :Console, "#{__dir__}/cli/console"
    autoload :Web, "#{__dir__}/cli/web"
    autoload :Convert, "#{__dir__}/cli/convert"
    autoload :Completion, "#{__dir__}/cli/completion"
    autoload :Help, "#{__dir__}/cli/help"
    autoload :HeapCommand, "#{__dir__}/cli/heap_command"
    autoload :Classic, "#{__dir__}/cli/classic"
    autoload :Defaults, "#{__dir__}/cli/defaults"
    autoload :ManPage, "#{__dir__}/cli/man_page"
    autoload :Suggestion, "#{__dir__}/cli/suggestion"

    # Runs a command line.
    def self.start(arguments)
      terminal = Terminal.new
      verb, *rest = arguments
      status(terminal) do
        case verb
        when "--version", "-v" then terminal.puts("memprof #{VERSION}")
        when "--help", "-h" then command("help", terminal).start([])
        when nil then raise UsageError, "no command given; see `memprof --help`"
        when /\A-/ then Classic.new(terminal).start(arguments)
        else command(verb, terminal).start(rest)
        end
      end
    end

    def self.command(verb, terminal)
      name = VERBS[verb]
      unless name
        near = Suggestion.of(verb, VERBS.keys)
        raise UsageError, "unknown command \"#{verb}\"#{near}; see `memprof --help`"
      end

      const_get(name).new(terminal)
    end

    def self.status(terminal)
      result = yield
      result.is_a?(Integer) ? result : 0
    rescue UsageError => e
      terminal.warn(*e.lines)
      2
    rescue SystemCallError => e
      terminal.warn(e.message)
      2
    rescue Interrupt
      130
    end
    private_class_method :status
  end
end
