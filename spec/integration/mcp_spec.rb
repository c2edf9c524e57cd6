# frozen_string_literal: true

require "json"
require "open3"
require "tmpdir"

# A client that follows the protocol, and knows nothing but the answers.
RSpec.describe "memprof mcp" do
  page = File.expand_path("../../docs/mcp.md", __dir__)

  shop = <<~'RUBY'
    class Visit
      def initialize(number) = @path = "/products/#{number}" * 4
    end

    VISITS = []

    def serve(number)
      VISITS << Visit.new(number)
    end

    $stdout.sync = true
    puts "ready"
    (1..).each { |number| serve(number) and sleep(0.0005) }
  RUBY

  # Starts the server, and yields a client: a proc that sends a message and returns the reply.
  def serve(*options, env: {})
    env = { "RUBYOPT" => nil, "LC_ALL" => "C.UTF-8" }.merge(env)
    command = [RbConfig.ruby, "-I#{ChildRuby::LIB}", File.join(ChildRuby::ROOT, "exe/memprof"), "mcp"]
    Open3.popen3(env, *command, *options) do |input, output, errors, child|
      number = 0
      client = ->(method, params = {}) do
        input.puts(JSON.generate(jsonrpc: "2.0", id: number += 1, method: method, params: params))
        reply = JSON.parse(output.gets || raise("no reply: #{errors.read}"))
        expect(reply["id"]).to eq(number)
        reply["result"] || raise(reply.to_s)
      end
      hello = client.call("initialize", { protocolVersion: "2025-06-18", capabilities: {},
        clientInfo: { name: "spec", version: "1" } })
      expect(hello["protocolVersion"]).to eq("2025-06-18")
      input.puts(JSON.generate(jsonrpc: "2.0", method: "notifications/initialized"))
      yield client
      input.close
      expect([output.read, child.value.exitstatus]).to eq(["", 0])
    end
  end

  # Calls a tool: its text, and the calls that it names.
  def ask(client, tool, arguments)
    result = client.call("tools/call", { name: tool, arguments: arguments })
    text = result["content"].first["text"]
    expect(result["isError"]).to be(false), text
    expect(text.bytesize).to be <= 6000
    [text, text.scan(/^\{"tool".*$/).map { |line| JSON.parse(line) }]
  end

  # Without what differs from run to run and without notes; with the first of the calls that come next.
  def settled(text)
    text.gsub(%r{/[^" ]*/library/}, "/home/ann/.local/share/memprof/")
      .gsub(%r{/[^" ]*/shop\.rb}, "/srv/shop/shop.rb")
      .gsub(/\nNote: (?:.+\n)+?(?=\n|~~~)/, "")
      .gsub(/^(\{"tool".*\n)(?:\{"tool".*(?:\n|\z))+/, "\\1...\n")
  end

  # The tools that were called, and their arguments.
  def calls_of(transcript)
    transcript.scan(/^> (\w+) (\{.*\})$/).map { |name, json| [name, JSON.parse(json).keys.sort] }
  end

  it "leads from a PID to the line that leaks in at most five calls, with nothing but its answers" do
    skip "needs root, or the permission to trace any process" unless Process.euid.zero?
    skip "needs Linux" unless RUBY_PLATFORM.include?("linux")
    Dir.mktmpdir do |directory|
      program = File.join(directory, "shop.rb")
      File.write(program, shop)
      leaking = shop.lines.index { |line| line.include?("VISITS <<") } + 1
      plain_program("Process.setproctitle('shop [shop]'); load(#{program.dump})") do |pid,|
        transcript = +""
        serve("--allow", env: { "MEMPROF_LIBRARY" => File.join(directory, "library") }) do |client|
          expect(client.call("tools/list")["tools"].map { |tool| tool["name"] }).to include("verdict")
          name = "verdict"
          arguments = { "targets" => [pid.to_s], "seconds" => 5 }
          5.times do
            text, calls = ask(client, name, arguments)
            transcript << "> #{name} #{JSON.generate(arguments)}\n\n#{text}\n"
            break if text.match?(/^Allocated at .*:\d+/) || calls.empty?

            name, arguments = calls.first.values_at("tool", "arguments")
          end
        end
        expect(transcript).to match(/^Allocated at +\S*shop\.rb:#{leaking} in serve/), transcript
        transcript = settled(transcript.gsub(pid.to_s, "4711"))
        if ENV["UPDATE_SNAPSHOTS"]
          block = "<!-- written by spec/integration/mcp_spec.rb -->\n```\n#{transcript.strip}\n```"
          File.write(page, File.read(page).sub(/^<!-- written by .*? -->\n```\n.*?^```$/m) { block })
        end
        expect(calls_of(File.read(page))).to eq(calls_of(transcript))
      end
    end
  end

  it "lets a command that it runs neither read its messages nor write among its answers" do
    serve("--allow") do |client|
      code = "$stdout.puts 'noise'; $stdout.flush; p $stdin.read; A = Array.new(9) { |n| n.to_s * 3 }"
      text, = ask(client, "run", { "command" => [RbConfig.ruby, "-e", code], "limit" => 3 })
      expect(text).to match(/^\S+ objects .* retained of .* allocated/)
      expect(client.call("ping")).to eq({})
    end
  end
end
