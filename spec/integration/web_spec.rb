# frozen_string_literal: true

require "net/http"
require "open3"
require "socket"
require "timeout"

# `memprof web` as a user runs it: a child process, a socket, a real dump.
RSpec.describe "memprof web" do
  include HeapDumps

  def serve(*arguments)
    program = [RbConfig.ruby, "-I#{ChildRuby::LIB}", File.join(ChildRuby::ROOT, "exe/memprof")]
    Open3.popen3(*program, "web", "--no-open", *arguments) do |_, stdout, stderr, child|
      address = Timeout.timeout(120) { stdout.gets }
      raise stderr.read unless address

      yield(URI(address.chomp), child)
    ensure
      Process.kill(:KILL, child.pid) if child.alive?
    end
  end

  def get(uri, path, **headers)
    Net::HTTP.start(uri.host, uri.port) { |http| http.get(path, headers.transform_keys(&:to_s)) }
  end

  # A page, once the heap is open.
  def page(uri, path, **headers)
    Timeout.timeout(120) do
      loop do
        answer = get(uri, path, **headers)
        return answer unless answer.code == "202"

        sleep(0.05)
      end
    end
  end

  it "prints an address that opens once, and ends with a signal" do
    serve(cache_dump) do |uri, child|
      expect(uri.host).to eq("127.0.0.1")
      expect(get(uri, "/").code).to eq("403")
      opened = get(uri, uri.request_uri)
      expect([opened.code, opened["location"]]).to eq(["303", "/"])
      expect(get(uri, uri.request_uri).code).to eq("403")
      cookie = opened["set-cookie"][/\A[^;]+/]
      expect(get(uri, "/", cookie: cookie)["location"]).to end_with("/heaps/1/")
      expect(page(uri, "/heaps/1/", cookie: cookie).body).to include("Sessions::STORE")
      expect(get(uri, "/heaps", cookie: cookie, host: "evil.example").code).to eq("403")
      Process.kill(:INT, child.pid)
      expect(child.value.exitstatus).to eq(0)
    end
  end

  # Pages of the same kind are many: of each kind some are followed.
  def kind(path)
    page = path.sub(/\?.*/, "").sub(%r{(?<=/objects/|/classes/|/graph/).*}, "X")
    "#{page} #{path[/by=\w+/]}"
  end

  it "has links that all lead somewhere" do
    serve("--token", "long enough", cache_dump, cache_dump(2)) do |uri, _|
      headers = { authorization: "Bearer long enough" }
      waiting = ["/heaps", "/heaps/1/", "/heaps/2/"]
      seen = {}
      kinds = Hash.new(0)
      while (path = waiting.shift)
        next if seen[path] || (kinds[kind(path)] += 1) > 6

        answer = page(uri, path, **headers)
        expect(answer.code.to_i).to be < 400, "#{path}: #{answer.code} #{answer.body}"
        seen[path] = true
        links = answer.body.to_s.scan(/<a\b[^>]*\bhref="([^"#]+)"/).flatten
        waiting.concat(links.map { |link| WebBrowser.unescape(link) })
        waiting << answer["location"].delete_prefix(uri.origin) if answer["location"]
      end
      expect(kinds.size).to be > 20
      expect(seen.size).to be > 100
    end
  end

  it "takes the port and the token of its options" do
    serve("--port", "0", "--token", "long enough", cache_dump, cache_dump(2)) do |uri, child|
      headers = { authorization: "Bearer long enough" }
      heaps = JSON.parse(page(uri, "/heaps.json", **headers).body)["heaps"]
      expect(heaps.map { |heap| heap["name"] }).to eq(["cache-1.memprof", "cache-2.memprof"])
      overview = JSON.parse(page(uri, "/heaps/2.json", **headers).body)["overview"]
      expect(overview["objects"]["count"]).to be > 1000
      Process.kill(:TERM, child.pid)
      expect(child.value.exitstatus).to eq(0)
    end
  end

  it "says in one line what it can't do" do
    {
      [] => /FILE is missing; see `memprof help web`/,
      ["/nowhere.memprof"] => %r{cannot read /nowhere.memprof: no such file},
      ["-"] => /cannot read -: a file is required/,
      ["--port", "70000", __FILE__] => /expected a number from 0 to 65535/,
      ["--token", "short", __FILE__] => /expected at least 8 characters/,
      ["--bind", "203.0.113.1", "--no-open", __FILE__] => /cannot listen on 203.0.113.1:0: /
    }.each do |arguments, message|
      stdout, stderr, status = run_memprof("web", *arguments)
      expect([stdout, status.exitstatus, stderr.lines.size]).to eq(["", 2, 1]), stderr
      expect(stderr).to match(message)
    end
  end

  it "needs no web server to be installed" do
    program = <<~RUBY
      require "memprof/web"
      require "memprof/web/server"
      puts %w[Puma WEBrick Rack].select { |name| Object.const_defined?(name) }.inspect
    RUBY
    expect(run_ruby(program)).to have_attributes(stdout: "[]\n", stderr: "")
  end

  it "answers while a thousand connections say nothing, and after that" do
    serve("--token", "long enough", cache_dump) do |uri, _|
      headers = { authorization: "Bearer long enough" }
      page(uri, "/heaps/1/", **headers)
      sockets = Array.new(1000) { TCPSocket.new(uri.host, uri.port) }
      sockets.each { |socket|
        socket.write("GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: keep-alive\r\n\r\n")
      }
      expect(Timeout.timeout(60) {
               sockets.last.read
             }).to start_with("HTTP/1.1 403").and include("connection: close")
      expect(page(uri, "/heaps/1/", **headers).code).to eq("200")
    ensure
      sockets&.each(&:close)
    end
  end
end
