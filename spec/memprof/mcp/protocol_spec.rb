# frozen_string_literal: true

require "memprof/mcp"
require "stringio"

RSpec.describe Memprof::MCP::Protocol do
  let(:log) { StringIO.new }
  let(:tools) do
    Class.new do
      def instructions = "ask"
      def list = [{ name: "echo" }]
      def tool?(name) = name == "echo"

      def call(_name, arguments)
        raise "broken" if arguments["broken"]

        yield 1, "half"
        { content: [{ type: "text", text: arguments["text"] }], isError: false }
      end
    end.new
  end

  # The replies to lines, parsed.
  def replies(*lines)
    output = StringIO.new
    text = lines.map { |line| line.is_a?(String) ? line : JSON.generate(line) }.join("\n")
    described_class.new(tools, input: StringIO.new("#{text}\n"), output: output, log: log).run
    output.string.lines.map { |line| JSON.parse(line) }
  end

  def request(method, params = nil, id: 1)
    { jsonrpc: "2.0", id: id, method: method, params: params }.compact
  end

  it "introduces itself in the newest version that both know" do
    wanted = {
      "2025-06-18" => "2025-06-18", "2024-11-05" => "2024-11-05", "2025-09-01" => "2025-06-18",
      "2031-01-01" => "2025-11-25", "2020-01-01" => "2024-11-05"
    }
    wanted.each do |version, answered|
      reply, = replies(request("initialize", { protocolVersion: version, capabilities: {} }))
      expect(reply["result"]).to include("protocolVersion" => answered, "capabilities" => { "tools" => {} },
        "instructions" => "ask")
      expect(reply["result"]["serverInfo"]).to include("name" => "memprof", "version" => Memprof::VERSION)
    end
  end

  it "answers pings, and lists and calls tools" do
    found = replies(request("ping", id: "a"), request("tools/list", id: 2),
      request("tools/call", { name: "echo", arguments: { text: "é" } }, id: 3))

    expect(found.map { |reply| reply["id"] }).to eq(["a", 2, 3])
    expect(found[0]["result"]).to eq({})
    expect(found[1]["result"]).to eq("tools" => [{ "name" => "echo" }])
    expect(found[2]["result"]["content"]).to eq([{ "type" => "text", "text" => "é" }])
  end

  it "reports progress to a client that asks for it" do
    params = { name: "echo", arguments: { text: "x" }, _meta: { progressToken: "t" } }
    progress, = replies(request("tools/call", params))

    expect(progress).to eq("jsonrpc" => "2.0", "method" => "notifications/progress",
      "params" => { "progressToken" => "t", "progress" => 1, "message" => "half" })
  end

  it "answers no notification, no response and no empty line" do
    cancelled = { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 1 } }
    expect(replies({ jsonrpc: "2.0", method: "notifications/initialized" }, cancelled,
      { jsonrpc: "2.0", id: 4, result: {} }, "")).to eq([])
  end

  it "answers each request of a batch" do
    found, = replies([request("ping", id: 1), { jsonrpc: "2.0", method: "notifications/initialized" },
      request("ping", id: 2)])
    expect(found.map { |reply| reply["id"] }).to eq([1, 2])
  end

  {
    "{" => -32_700, "\xFF".dup.force_encoding("UTF-8") => -32_700, ("[" * 200) => -32_700,
    "[]" => -32_600, "3" => -32_600, '{"id":1,"method":"ping"}' => -32_600,
    '{"jsonrpc":"2.0","id":1}' => -32_600, '{"jsonrpc":"2.0","id":{},"method":"ping"}' => -32_600,
    '{"jsonrpc":"2.0","id":1,"method":"resources/list"}' => -32_601,
    '{"jsonrpc":"2.0","id":1,"method":"initialize"}' => -32_602,
    '{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}' => -32_602,
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"rm"}}' => -32_602,
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":[]}}' => -32_602
  }.each do |line, code|
    it "answers #{line.scrub("?")[0, 60]} with the error #{code}, and continues" do
      error, pong = replies(line, request("ping", id: 9))
      expect(error["error"]["code"]).to eq(code)
      expect(pong).to include("id" => 9, "result" => {})
    end
  end

  it "survives a bug of ours, and logs it on stderr only" do
    broken = request("tools/call", { name: "echo", arguments: { broken: true } })
    error, pong = replies(broken, request("ping"))
    expect(error["error"]).to include("code" => -32_603, "message" => /internal error .*RuntimeError/)
    expect(pong["result"]).to eq({})
    expect(log.string).to match(/\Amemprof: RuntimeError in tools\/call: broken/)
  end

  it "drops a message that is too long" do
    error, pong = replies("\"#{"x" * (5 << 20)}\"", request("ping"))
    expect(error["error"]).to include("code" => -32_600)
    expect(pong["result"]).to eq({})
  end

  it "ends when the client closes the output" do
    reader, writer = IO.pipe
    reader.close
    input = StringIO.new("#{JSON.generate(request("ping"))}\n")
    expect { described_class.new(tools, input: input, output: writer).run }.not_to raise_error
  ensure
    writer.close
  end
end
