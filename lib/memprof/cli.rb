# frozen_string_literal: true

require_relative "clock"
require_relative "compat"
require_relative "errors"
require_relative "output"
require_relative "paint"
require_relative "printable"
require_relative "units"
require_relative "version"

module Memprof
  # The command line, `memprof VERB`. It only presents results; each verb is a file of its own.
  module CLI
    # The verbs that the help lists, grouped by purpose.
    GROUPS = {
      "Watch a program" => %w[run check boot malloc attach],
      "Look into a process" => %w[dump stack memory],
      "Ask" => %w[leaks top histogram query show path tree diff trace],
      "Share" => %w[web export convert mcp help]
    }.freeze
    # Verbs that the help names without a summary.
    RARE = %w[track start stop stats core dups slots subset require console completion].freeze
    # Each verb and its class.
    VERBS = [*GROUPS.values.flatten, *RARE].to_h { |verb| [verb, verb.capitalize.to_sym] }.freeze

    # Wrong use or wrong input: one line on stderr, exit status 2.
    class UsageError < StandardError
      # The lines to print: a message has one line, unless it shows where a filter is wrong.
      def lines = [message]

      # A message of several lines.
      class Shown < UsageError
        def lines = message.split("\n")
      end
    end

    # Verbs in files of other names.
    ELSEWHERE = { "stop" => "cli/start", "subset" => "compat/memdump_command" }.freeze
    private_constant :ELSEWHERE

    VERBS.each { |verb, name| autoload(name, "#{__dir__}/#{ELSEWHERE.fetch(verb, "cli/#{verb}")}") }
    # The building blocks of the commands.
    {
      AgentNotes: "agent_notes", Arrival: "arrival", Attachment: "attachment", BootPage: "boot_page",
      Command: "command", Comparing: "comparing",
      ComparisonOptions: "comparing", Defaults: "defaults",
      Dumping: "dumping", ExitStatus: "exit_status", Flag: "flag", Flags: "flags",
      ForeignFiles: "foreign_files", GrowthRows: "growth_rows",
      HeapCommand: "heap_command", Listing: "listing", LiveProcess: "live_process", Loading: "loading",
      MallocPreload: "malloc_recording",
      MallocRecording: "malloc_recording", ManPage: "man_page", Objects: "objects", Options: "options",
      Overview: "overview", Page: "page", Pager: "pager", ProcessCopy: "process_copy",
      ProcessFacts: "process_facts", Program: "program", ReportFile: "report_file", Reports: "reports",
      Suggestion: "suggestion", Target: "target", Targets: "targets", Terminal: "terminal",
      VerdictText: "verdict_text", Watch: "watch"
    }.each { |name, file| autoload(name, "#{__dir__}/cli/#{file}") }

    # Runs a command line.
    def self.start(arguments)
      terminal = Terminal.new
      arguments = arguments.map { |argument| text_or_bytes(argument) }
      verb, *rest = arguments
      status(terminal) do
        case verb
        when "--version", "-v", "-V" then terminal.puts("memprof #{VERSION}")
        when "--help", "-h" then command("help", terminal).start([])
        when nil then raise UsageError, "no command given; see `memprof --help`"
        when "-" then command("leaks", terminal).start(arguments)
        when /\A-/ then start_option(arguments, terminal)
        else start_verb(verb, rest, terminal)
        end
      end
    end

    # `memprof TARGET...` does not begin with a verb.
    def self.start_verb(verb, rest, terminal)
      found = Targets.verb([verb, *rest]) unless VERBS.key?(verb)
      found ? command(found, terminal).start([verb, *rest]) : command(verb, terminal).start(rest)
    end

    # Options may also come before the targets, unless they are those of the old command line.
    def self.start_option(arguments, terminal)
      return Compat::Uploader.new(terminal).start(arguments) if Compat::Uploader.options?(arguments)

      return command("help", terminal).start([]) if arguments.intersect?(%w[-h --help])

      found = Targets.verb_behind_options(arguments)
      raise UsageError, Targets.refusal(arguments) unless found

      command(found, terminal).start(arguments)
    end
    private_class_method :start_verb, :start_option

    # File names need not be valid text, which OptionParser insists on; it accepts bytes.
    def self.text_or_bytes(text) = text.valid_encoding? ? text : text.b

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
      result.is_a?(Integer) ? result : ExitStatus::DONE
    rescue UsageError => e
      terminal.warn(*e.lines)
      ExitStatus::FAILED
    rescue Interrupt
      ExitStatus::INTERRUPTED
    end
    private_class_method :status
  end
end
