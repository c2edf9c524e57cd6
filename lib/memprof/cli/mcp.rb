# frozen_string_literal: true

require_relative "scratch"

module Memprof
  module CLI
    # `memprof mcp`: a server for language models.
    class Mcp < Command
      SUMMARY = "serves AI agents (MCP server on stdin and stdout)"
      USAGE = "[OPTIONS]"
      DETAILS = <<~TEXT
        Speaks the Model Context Protocol, so that an agent can ask which processes run
        Ruby, what leaks in a dump, what retains an object, where the RSS goes. Answers
        are short, and each names the calls that come next. A client starts the server:

          {"mcpServers": {"memprof": {"command": "memprof", "args": ["mcp"]}}}

        Without options it only reads: dumps, /proc, and what a process that has loaded
        memprof reports about its memory. It shows no contents of strings.

        Examples:
          memprof mcp
          memprof mcp --allow
      TEXT

      def call(arguments)
        expect_arguments(arguments)
        load_library
        require_relative "../mcp"
        @terminal.warn("an MCP client starts this; it waits for messages on stdin") if $stdin.tty?
        input, output = own_streams
        Scratch.directory("memprof-mcp-") do |directory|
          runner = MCP::Runner.new(directory, allow: @options[:allow], values: @options[:show_contents])
          MCP::Protocol.new(runner, input: input, output: output).run
        end
        0
      end

      private

      # A command that is run must neither read the messages nor write among the answers.
      def own_streams
        streams = [$stdin, $stdout].map(&:dup).each(&:binmode)
        $stdin.reopen(File::NULL)
        $stdout.reopen($stderr)
        streams
      end
    end
  end
end
