# frozen_string_literal: true

require "json"
require_relative "../printable"
require_relative "../version"

module Memprof
  module MCP
    # The part of the Model Context Protocol that a server with tools needs: JSON-RPC 2.0, a message a line.
    # It answers one message after the other, so a notification of cancellation comes too late to matter.
    class Protocol
      # Changes between versions do not concern a server that only has tools.
      VERSIONS = %w[2024-11-05 2025-03-26 2025-06-18 2025-11-25].freeze
      LONGEST = 4 << 20 # bytes of a message
      # Codes of JSON-RPC.
      PARSE_ERROR = -32_700
      INVALID_REQUEST = -32_600
      METHOD_NOT_FOUND = -32_601
      INVALID_PARAMS = -32_602
      INTERNAL_ERROR = -32_603
      private_constant :LONGEST

      # A request that the protocol forbids.
      class Refused < StandardError
        attr_reader :code

        def initialize(code, message)
          super(message)
          @code = code
        end
      end

      # `tools` answers #list and #call(name, arguments) { |progress| }; errors of ours go to `log`.
      def initialize(tools, input:, output:, log: $stderr)
        @tools = tools
        @input = input
        @output = output
        @log = log
      end

      # Answers until the input ends, or the client closes the output.
      def run
        while (line = @input.gets("\n", LONGEST))
          next if line.b.strip.empty?

          reply = answer(line)
          send_message(reply) if reply
        end
      rescue Errno::EPIPE, IOError
        nil # the client is gone
      end

      private

      # The reply to a line; nil if it needs none.
      def answer(line)
        skip_rest(line)
        message = JSON.parse(line.dup.force_encoding(Encoding::UTF_8))
        return reply_to(message) unless message.is_a?(Array)
        return failure(nil, INVALID_REQUEST, "an empty batch") if message.empty?

        replies = message.filter_map { |one| reply_to(one) }
        replies unless replies.empty?
      rescue JSON::ParserError, EncodingError
        failure(nil, PARSE_ERROR, "the message is not valid JSON")
      rescue Refused => e
        failure(nil, e.code, e.message)
      end

      # A message that is too long is dropped as a whole.
      def skip_rest(line)
        return if line.end_with?("\n") || line.bytesize < LONGEST

        until (rest = @input.gets("\n", LONGEST)).nil? || rest.end_with?("\n"); end
        raise Refused.new(INVALID_REQUEST, "a message may have #{LONGEST} bytes")
      end

      def reply_to(message)
        return failure(nil, INVALID_REQUEST, "expected a JSON-RPC 2.0 message") unless message.is_a?(Hash)

        id = message["id"]
        return if message.key?("result") || message.key?("error") # we ask the client nothing
        unless message["jsonrpc"] == "2.0" && message["method"].is_a?(String)
          return failure(id, INVALID_REQUEST, "expected a JSON-RPC 2.0 request")
        end
        return unless message.key?("id") # a notification: initialized, cancelled, ...
        return failure(nil, INVALID_REQUEST, "an id is a string or a number") unless id?(id)

        result(id, message["method"], message["params"])
      end

      def id?(id) = id.is_a?(String) || id.is_a?(Integer)

      def result(id, method, params)
        params = {} if params.nil?
        raise Refused.new(INVALID_PARAMS, "params must be an object") unless params.is_a?(Hash)

        { jsonrpc: "2.0", id: id, result: respond(method, params) }
      rescue Refused => e
        failure(id, e.code, e.message)
      rescue StandardError => e
        @log.puts("memprof: #{e.class} in #{method}: #{Printable.line(e.message)} (#{e.backtrace&.first})")
        failure(id, INTERNAL_ERROR, "internal error in memprof (please report it): #{e.class}")
      end

      def respond(method, params)
        case method
        when "initialize" then hello(params)
        when "ping" then {}
        when "tools/list" then { tools: @tools.list }
        when "tools/call" then call(params)
        else raise Refused.new(METHOD_NOT_FOUND, "unknown method")
        end
      end

      def hello(params)
        { protocolVersion: version(params["protocolVersion"]), capabilities: { tools: {} },
          serverInfo: { name: "memprof", title: "memprof, a memory profiler for Ruby", version: VERSION },
          instructions: @tools.instructions }
      end

      # The newest that both know: a client that knows a later one knows ours, too.
      def version(wanted)
        raise Refused.new(INVALID_PARAMS, "protocolVersion is missing") unless wanted.is_a?(String)

        VERSIONS.reverse.find { |version| version <= wanted } || VERSIONS.first
      end

      def call(params)
        name, arguments = params.values_at("name", "arguments")
        raise Refused.new(INVALID_PARAMS, "unknown tool; see tools/list") unless @tools.tool?(name)

        arguments = {} if arguments.nil?
        raise Refused.new(INVALID_PARAMS, "arguments must be an object") unless arguments.is_a?(Hash)

        meta = params["_meta"]
        token = meta["progressToken"] if meta.is_a?(Hash)
        @tools.call(name, arguments) { |number, text| progress(token, number, text) if id?(token) }
      end

      def progress(token, number, text)
        send_message({ jsonrpc: "2.0", method: "notifications/progress",
          params: { progressToken: token, progress: number, message: text } })
      end

      def failure(id, code, message) = { jsonrpc: "2.0", id: id, error: { code: code, message: message } }

      def send_message(message)
        @output.write("#{JSON.generate(message, max_nesting: 0)}\n")
        @output.flush
      end
    end
  end
end
