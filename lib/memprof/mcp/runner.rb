# frozen_string_literal: true

require "stringio"
require_relative "../cli"

module Memprof
  module MCP
    # Has the commands of memprof answer the calls of tools.
    class Runner
      HOW = "This server may not look into running processes or start commands. Its user can allow it: in " \
            "the client's settings, start it as `memprof mcp --allow`."
      NO_VALUES = "This server shows no values. Its user can change that: start it as " \
                  "`memprof mcp --show-contents`."
      BETWEEN = 1 # seconds between two reports of progress
      private_constant :BETWEEN

      # Where a command prints: into strings, but progress to the client.
      class Terminal < CLI::Terminal
        attr_reader :out, :err

        def initialize(&progress)
          @out, @err = Array.new(2) { StringIO.new(String.new(encoding: Encoding::BINARY)) }
          @progress = progress
          @count = 0
          super(out: @out, err: @err)
        end

        def progress(message)
          now = Clock.now
          return if message.nil? || @progress.nil? || (@said && now - @said < BETWEEN)

          @said = now
          @progress.call(@count += 1, Answer.name(message))
        end

        # Its output, then its warnings.
        def text = [@out, @err].map { |io| Printable.utf8(io.string.dup).gsub(/^memprof: /, "") }
      end

      # `directory` is for temporary files. Values are shown if `values`, and asked for.
      def initialize(directory, allow: false, values: false)
        @directory = directory
        @hidden = Hidden.new(directory)
        @allow = allow
        @values = values
      end

      def list = Tools::TABLE.map { |tool| tool.to_h(@allow) }

      def tool?(name) = !Tools.find(name).nil?

      def instructions = Tools::INSTRUCTIONS

      # The result of tools/call. The block gets progress: a number that rises, and a text.
      def call(name, arguments, &progress)
        tool = Tools.find(name)
        tool.check(arguments)
        return Answer.failure(HOW) if tool.guarded?(arguments) && !@allow
        return Answer.failure(NO_VALUES) if arguments["values"] && !@values

        answer(tool, arguments, &progress).to_h
      rescue Parameter::Invalid, CLI::UsageError, Memprof::Error, SystemCallError => e
        Answer.failure(e.message)
      end

      private

      def answer(tool, arguments, &progress)
        arguments = tool.complete(arguments)
        terminal = Terminal.new(&progress)
        return own(tool, arguments, terminal) unless tool.verb.is_a?(String)

        command = CLI.command(tool.verb, terminal).extend(Captured)
        hide = !arguments["values"] && !tool.guarded?(arguments)
        command.hidden = @hidden if hide
        status = command.start(tool.command_line(arguments))
        taken = command.taken || Captured::Taken.new
        text = [taken.text, *terminal.text, ended(arguments, status)].compact.join
        calls = suggested(taken.steps, tool, arguments)
        Answer.new(named(text, arguments), document: taken.document, calls: calls, **further(tool, arguments))
      rescue CLI::UsageError => e
        raise e.class, named(e.message, arguments)
      end

      # Tools that are not commands.
      def own(tool, arguments, terminal)
        document, page, steps = tool.verb.new(terminal).call(arguments)
        text = [page.to(:text), *terminal.text].join
        calls = suggested(steps, tool, arguments)
        Answer.new(text, document: document, calls: calls, **further(tool, arguments))
      end

      # The status of a program that was run is its own.
      def ended(arguments, status)
        "The command ended with status #{status}.\n" if arguments.key?("command") && status != 0
      end

      # Messages name the dump that was asked for, not its copy.
      def named(text, arguments)
        path = arguments["file"] || arguments["target"] || Array(arguments["targets"]).last
        path ? @hidden.rename(text, path) : text
      end

      # The calls for commands that are suggested, with the purpose of each. The time that the client allows
      # is that of the call before.
      def suggested(steps, before, given)
        steps.to_a.filter_map do |line, purpose|
          tool, arguments = Tools.call_of(line)
          next if tool.nil? || (tool.guarded?(arguments) && !@allow)

          arguments = given.slice("seconds").merge(arguments) if tool == before && tool.guarded?(arguments)
          [tool, arguments, purpose]
        end
      end

      # How to see other rows.
      def further(tool, arguments)
        limit = arguments["limit"] or return {}
        more = "limit: #{4 * limit}"
        more = "offset: #{arguments.fetch("offset", 0) + limit}" if tool.parameter("offset")
        fewer = "limit: #{(limit / 2.0).ceil}"
        { more: "call #{tool.name} with #{more}", fewer: "call #{tool.name} with #{fewer}" }
      end
    end
  end
end
